from __future__ import annotations

import logging

import pytest

from agentbus.config import Settings
from agentbus.runtime import logs
from agentbus.runtime.failures import FAILED, STARTS, TAIL_BYTES, last_failure
from agentbus.runtime.paths import locate, prepare


@pytest.fixture
def log(tmp_path):
    """What the supervisor writes, by its own means; the path is an attribute."""
    paths = locate(
        Settings(data_directory=str(tmp_path / "d")), {"AGENTBUS_RUNTIME_DIR": str(tmp_path / "r")}
    )
    prepare(paths)
    level = logging.getLogger().level
    logs.configure("supervisor", paths, Settings())
    written = logs.get("agentbus.tests")
    written.path = paths.log("supervisor")
    yield written
    logs.close()
    logging.getLogger().setLevel(level)


@pytest.mark.parametrize("text", ['it said "no"\nand died', "plain", "\u2028 \U0001f600", ""])
def test_the_last_failure_is_told_whatever_its_words_are(log, text):
    log.info(STARTS, descriptors=1)
    log.error(FAILED, code="internal", text=text)
    log.info("daemon_ended")
    assert last_failure(log.path) == f"internal: {text}"


def test_a_daemon_that_started_since_has_not_failed(log):
    log.info(STARTS)
    log.error(FAILED, code="internal", text="x")
    log.info(STARTS)
    log.info("daemon_ended")
    assert last_failure(log.path) is None


def test_only_the_end_of_the_log_counts(log):
    log.error(FAILED, code="internal", text="long ago")
    log.info("other", text="y" * TAIL_BYTES)
    assert last_failure(log.path) is None


def test_without_a_log_nothing_has_failed(tmp_path):
    assert last_failure(str(tmp_path / "none.log")) is None
