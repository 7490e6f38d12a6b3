from __future__ import annotations

import errno
import os
import re

import pytest

from agentbus.runtime.refusals import told


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ENOSPC, "storage_error", "file system is full; make room"),
        (errno.EROFS, "storage_error", "read-only"),
        (errno.EDQUOT, "storage_error", "full for this user"),
        (errno.EIO, "storage_error", "look at the disk"),
        (errno.EACCES, "unsafe_permissions", "you may not"),
        (errno.EPERM, "unsafe_permissions", "you may not"),
        (errno.EMFILE, "unavailable", "no more to give"),
        (errno.EAGAIN, "unavailable", "no more to give"),
        (errno.ENOMEM, "unavailable", "no more to give"),
        (errno.ENXIO, "internal", "No such device"),
    ],
)
def test_a_person_is_told_what_happened_and_what_to_do(number, code, words):
    error = told(OSError(number, os.strerror(number), "/place"), "the log cannot be written")
    assert error.code == code
    assert error.message.startswith("the log cannot be written: /place: ")
    assert words in error.message
    assert not re.search(r"Errno|\bE[A-Z]{3,}\b|[a-z]Error", error.message)


def test_an_error_without_a_text_or_a_file_is_told_by_its_kind():
    assert told(TimeoutError(), "x").message == "x: TimeoutError"
