"""One rotating log file a process, one line an event.

    2026-11-30T16:46:00.123Z info writer[4711] action=child_died name=gateway code=70

`action` is stable, for grep and for programs; the rest are fields of that action. A value with
anything but plain characters in it is a JSON string, so that no name can imitate a line or a
field. Contents of messages and memories are never given to a log.
"""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import re
import traceback
from datetime import UTC, datetime
from typing import Any, Final

from agentbus.config import MIB, Settings
from agentbus.runtime.paths import Paths

FILES: Final = 4
FILE_BYTES: Final = 16 * MIB

_ROOT: Final = "agentbus"
_PLAIN: Final = re.compile(r"[\w.,:;/@+*()\[\]<>~-]+", re.ASCII)
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


logging.getLogger(_ROOT).addHandler(logging.NullHandler())  # before `configure`, no line on stderr


class Log:
    """A logger whose messages are an action and its fields."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, action: str, **fields: Any) -> None:
        """For whoever traces one connection."""
        self._write(logging.DEBUG, action, fields)

    def info(self, action: str, **fields: Any) -> None:
        """The life of the daemon, a few lines an hour."""
        self._write(logging.INFO, action, fields)

    def warn(self, action: str, **fields: Any) -> None:
        """It goes on, but somebody should know."""
        self._write(logging.WARNING, action, fields)

    def error(self, action: str, **fields: Any) -> None:
        """Something was given up."""
        self._write(logging.ERROR, action, fields)

    def crash(self, action: str, error: BaseException, **fields: Any) -> None:
        """An exception that nobody had foreseen, with where it came from."""
        frames = traceback.extract_tb(error.__traceback__)
        where = " ".join(f"{os.path.basename(f.filename)}:{f.lineno}:{f.name}" for f in frames)
        fields |= {"error": type(error).__name__, "text": str(error), "where": where}
        self._write(logging.ERROR, action, fields)

    def _write(self, level: int, action: str, fields: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, action, extra={"fields": fields})


def get(name: str) -> Log:
    """The log of a module; pass `__name__`."""
    return Log(logging.getLogger(name))


def configure(name: str, paths: Paths, settings: Settings) -> None:
    """Sends this process' log to its file. A forked child calls it again for its own."""
    handler = logging.handlers.RotatingFileHandler(
        paths.log(name), maxBytes=FILE_BYTES, backupCount=FILES - 1, encoding="utf-8", delay=True
    )
    handler.setFormatter(Formatter(name))
    logger = logging.getLogger()
    close()
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    logging.getLogger(_ROOT).setLevel(_LEVELS[settings.log_level])
    logging.raiseExceptions = False  # a full disk must not stop what is being logged


def rotate(path: str) -> None:
    """Moves a log that another program writes aside when it has grown; while nobody writes it."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.getsize(path) > FILE_BYTES:
            os.replace(path, f"{path}.1")


def close() -> None:
    """Closes the files of this process' log. What a full disk has not taken by now is lost."""
    logger = logging.getLogger()
    for handler in logger.handlers[:]:
        if isinstance(handler.formatter, Formatter):
            logger.removeHandler(handler)
            with contextlib.suppress(OSError):
                handler.close()


class Formatter(logging.Formatter):
    """Lines as in the module's docstring; records of other libraries are `action=log`."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:  # type: ignore[explicit-override]
        """One line, without its end."""
        moment = datetime.fromtimestamp(record.created, UTC)
        stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(record.msecs):03d}Z"
        level = "warn" if record.levelno == logging.WARNING else record.levelname.lower()
        action, fields = _content(record)
        rest = "".join(f" {key}={_shown(value)}" for key, value in fields.items())
        return f"{stamp} {level} {self._process}[{record.process}] action={_shown(action)}{rest}"


def _content(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    fields = getattr(record, "fields", None)
    if fields is not None:
        return record.msg, fields
    fields = {"logger": record.name, "text": record.getMessage()}
    if record.exc_info and record.exc_info[0]:
        fields["error"] = record.exc_info[0].__name__
    return "log", fields


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    if _PLAIN.fullmatch(text):
        return text
    return json.dumps(text)
