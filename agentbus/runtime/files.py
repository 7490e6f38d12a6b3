"""Files that somebody else has put where they are."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

_KIB: Final = 1024


def content(path: str, most: int) -> bytes:
    """All of a regular file of at most so many bytes: a pipe or a device would never end.

    Raises OSError, whose `strerror` says what is wrong with anything else.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(fd, "rb", closefd=False) as file:
            found = file.read(most + 1)
    finally:
        os.close(fd)
    if len(found) > most:
        raise OSError(errno.EFBIG, f"it has more than {most // _KIB} KiB")
    return found
