from __future__ import annotations

import json
import os

import pytest

from agentbus.errors import RedisMissing
from agentbus.supervisor.report import Report
from agentbus.wire.error_codes import to_data


@pytest.fixture
def pipe():
    read, write = os.pipe()
    yield read, write
    os.close(read)


def test_ready_is_one_line_and_the_end(pipe):
    read, write = pipe
    Report(write).ready(7)
    assert json.loads(os.read(read, 1000)) == {"ready": True, "pid": 7}
    assert os.read(read, 1000) == b""


def test_a_failure_is_the_error_as_adapters_see_it(pipe):
    read, write = pipe
    Report(write).failure(to_data(RedisMissing("none")))
    error = {"code": "redis_missing", "message": "none", "retryable": False}
    assert json.loads(os.read(read, 1000)) == {"error": error}


def test_only_the_first_word_counts(pipe):
    read, write = pipe
    report = Report(write)
    report.ready(7)
    report.failure(to_data(RedisMissing("none")))
    report.close()
    assert os.read(read, 1000).count(b"\n") == 1


def test_closing_without_a_word_is_the_end_of_file(pipe):
    read, write = pipe
    Report(write).close()
    assert os.read(read, 1000) == b""


def test_programs_do_not_inherit_the_pipe(pipe):
    _, write = pipe
    os.set_inheritable(write, True)
    report = Report(write)
    assert not os.get_inheritable(write)
    report.close()


def test_nobody_listening_is_no_error():
    read, write = os.pipe()
    os.close(read)
    Report(write).ready(7)
    Report().ready(7)
