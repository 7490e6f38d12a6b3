from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.config import Settings
from agentbus.runtime import logs
from agentbus.runtime.paths import locate


@pytest.fixture
def paths(tmp_path):
    paths = locate(
        Settings(data_directory=str(tmp_path)), {"AGENTBUS_RUNTIME_DIR": str(tmp_path / "r")}
    )
    os.mkdir(paths.log_directory)
    root, ours = logging.getLogger(), logging.getLogger("agentbus")
    before = root.level, ours.level, logging.raiseExceptions
    yield paths
    logs.close()
    root.setLevel(before[0])
    ours.setLevel(before[1])
    logging.raiseExceptions = before[2]


def lines(paths, name="writer"):
    with open(paths.log(name), encoding="utf-8") as file:
        return file.read().splitlines()


def test_a_line_says_when_how_bad_who_and_what(paths):
    logs.configure("writer", paths, Settings())
    logs.get("agentbus.somewhere").info("opened", path="/a/b.sqlite3", rows=3)
    (line,) = lines(paths)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info writer\[\d+\] "
        r"action=opened path=/a/b.sqlite3 rows=3",
        line,
    )


def test_the_level_is_the_settings(paths):
    logs.configure("writer", paths, Settings(log_level="warn"))
    somewhere = logs.get("agentbus.somewhere")
    somewhere.debug("a")
    somewhere.info("b")
    somewhere.warn("c")
    somewhere.error("d")
    assert [re.search(r"Z (\w+) .*action=(\w)", line).groups() for line in lines(paths)] == [
        ("warn", "c"),
        ("error", "d"),
    ]


@given(text=st.text())
def test_no_value_can_imitate_a_line_or_a_field(text):
    record = logging.LogRecord("agentbus.x", logging.INFO, "", 0, "seen", (), None)
    record.fields = {"name": text, "last": "1"}
    line = logs.Formatter("writer").format(record)
    assert len(line.splitlines()) == 1
    assert line.isascii()
    found = re.search(r'action=seen name=(?:"(?:[^"\\]|\\.)*"|[^\s"=]+) last=1$', line)
    assert found, line


def test_a_crash_says_where_it_came_from(paths):
    logs.configure("writer", paths, Settings())
    try:
        {}["missing"]
    except KeyError as error:
        logs.get("agentbus.somewhere").crash("crashed", error, during="a test")
    (line,) = lines(paths)
    assert "action=crashed" in line
    assert "error=KeyError" in line
    assert "test_logs.py" in line


def test_what_other_libraries_log_is_a_line_of_the_same_kind(paths):
    logs.configure("writer", paths, Settings())
    logging.getLogger("asyncio").error("two\nlines of %s", "text")
    (line,) = lines(paths)
    assert line.endswith(r'action=log logger=asyncio text="two\nlines of text"')


def test_configuring_again_changes_the_file(paths):
    logs.configure("supervisor", paths, Settings())
    logs.get("agentbus.x").info("one")
    logs.configure("writer", paths, Settings())
    logs.get("agentbus.x").info("two")
    assert "action=one" in lines(paths, "supervisor")[0]
    assert len(lines(paths, "supervisor")) == 1
    assert "action=two" in lines(paths)[0]


def test_files_are_rotated_and_counted(paths, monkeypatch):
    monkeypatch.setattr(logs, "FILE_BYTES", 200)
    logs.configure("writer", paths, Settings())
    for number in range(50):
        logs.get("agentbus.x").info("counted", number=number)
    names = sorted(os.listdir(paths.log_directory))
    assert names == ["writer.log", "writer.log.1", "writer.log.2", "writer.log.3"]


def test_a_log_of_another_program_is_moved_aside_when_it_has_grown(paths, monkeypatch):
    monkeypatch.setattr(logs, "FILE_BYTES", 10)
    path = paths.log("redis")
    logs.rotate(path)
    with open(path, "w") as file:
        file.write("x" * 11)
    logs.rotate(path)
    assert os.listdir(paths.log_directory) == ["redis.log.1"]


def test_a_log_that_cannot_be_written_stops_nobody(paths):
    logs.configure("writer", paths, Settings())
    os.rmdir(paths.log_directory)
    logs.get("agentbus.x").info("lost")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has a file that is always full")
def test_a_log_without_room_stops_nobody_nor_does_closing_it(paths):
    os.symlink("/dev/full", paths.log("writer"))
    logs.configure("writer", paths, Settings())
    logs.get("agentbus.x").info("lost")
    logs.configure("gateway", paths, Settings())
    logs.get("agentbus.x").info("kept")
    logs.close()
    assert "action=kept" in Path(paths.log("gateway")).read_text()
