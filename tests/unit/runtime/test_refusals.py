from __future__ import annotations

import errno
import os
import re

import pytest

from agentbus.runtime.refusals import of_storage, told


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


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "is full; free some space"),
        (errno.EDQUOT, "full for this user; free some space"),
        (errno.EROFS, "read-only; make it writable"),
        (errno.EIO, "look at the disk"),
    ],
)
def test_a_disk_that_cannot_store_is_told_with_the_path_and_the_cure(number, words):
    refusal = of_storage("/place/file", OSError(number, os.strerror(number)))
    assert refusal.message.startswith("/place/file cannot be written: ")
    assert words in refusal.message


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "no"), OSError("odd"), OSError()])
def test_another_reason_than_the_disk_is_not_the_disks(error):
    assert of_storage("/place/file", error) is None
