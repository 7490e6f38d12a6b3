"""Files of other programs: read whole, replaced whole, and never half written."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from typing import Final

import msgspec

from agentbus.errors import ConfigInvalid
from agentbus.runtime import files

MAX_BYTES: Final = 64 * 1024 * 1024
BOM: Final = "\ufeff"


class Text(msgspec.Struct, frozen=True):
    """A decoded file: its text with newlines alone, and how it was written."""

    text: str
    bom: bool = False
    crlf: bool = False

    def encode(self, text: str) -> bytes:
        """Another text, written the same way."""
        shown = text.replace("\n", "\r\n") if self.crlf else text
        return ((BOM if self.bom else "") + shown).encode()


def decode(path: str, content: bytes | None) -> Text | None:
    """Raises ConfigInvalid where it is no UTF-8."""
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ConfigInvalid(
            f"{path} is not UTF-8 ({error.reason} at byte {error.start})"
        ) from error
    bom = text.startswith(BOM)
    text = text.removeprefix(BOM)
    crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    return Text(text.replace("\r\n", "\n") if crlf else text, bom, crlf)


def read(path: str) -> bytes | None:
    """None where there is no file. Raises ConfigInvalid."""
    try:
        return files.content(path, MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be read: {error.strerror}") from error


def make_directories(path: str) -> list[str]:
    """Those above a file; which of them were not there, the outermost first."""
    missing: list[str] = []
    directory = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(directory):
        missing.insert(0, directory)
        directory = os.path.dirname(directory)
    try:
        os.makedirs(os.path.dirname(os.path.realpath(path)), exist_ok=True)
    except OSError as error:
        raise ConfigInvalid(f"{missing[-1]} cannot be made: {error.strerror}") from error
    return missing


def replace(path: str, before: bytes | None, after: bytes | None, mode: int = 0o600) -> None:
    """From one content to another in one step, None being no file; a link stays one.

    Raises ConfigInvalid, also where the file does not hold `before` any more: then nothing is done.
    """
    target = os.path.realpath(path)
    temporary: str | None = None
    if before is not None and not os.access(target, os.W_OK):
        raise ConfigInvalid(f"{path} is read-only; make it writable, or change it by hand")
    try:
        if after is not None:
            temporary = _written(target, after, mode)
        if read(target) != before:
            raise ConfigInvalid(f"{path} was changed by another program meanwhile; run it again")
        if temporary is not None:
            os.replace(temporary, target)
        elif before is not None:
            os.unlink(target)
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be written: {error.strerror}") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _written(target: str, content: bytes, mode: int) -> str:
    """A file beside the target, with its mode where it is there."""
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(target).st_mode)
    directory, name = os.path.split(target)
    fd, path = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(fd, mode)
            os.fsync(fd)
    except OSError:
        os.unlink(path)
        raise
    return path
