"""Settings, servers and hooks that are not as they should be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import BOUND
from tests.system.doctor.conftest import Doctor, Place, tree


def configure(path: str, **settings: object) -> None:
    document = json.loads(Path(path).read_text())
    Path(path).write_text(json.dumps(document | settings))


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def test_where_nothing_was_ever_used_there_is_no_problem_and_nothing_is_made(place, tmp_path):
    bus = place()
    (tmp_path / "work").mkdir()
    before = tree(bus.directory, tmp_path)
    told = Doctor(bus, tmp_path)()
    assert told.warning("daemon").endswith("\nagentbus daemon")
    assert "init" in told.warning("harnesses") or "none of" in told.warning("harnesses")
    assert tree(bus.directory, tmp_path) == before


@pytest.mark.parametrize(
    ("text", "named"),
    [("{", "is not JSON"), ('{"redis_budget": 512}', "redis_budget_mib"), ("", "is empty")],
)
def test_a_configuration_that_cannot_be_used(place: Place, home: Path, text: str, named: str):
    bus = place()
    Path(bus.config_path).write_text(text)
    doctor = Doctor(bus, home)
    doctor.environment["AGENTBUS_CONFIG"] = bus.config_path
    told = doctor()
    assert named in told.of("configuration", "problem")
    assert bus.config_path in told.of("configuration", "problem")


def test_a_secret_in_a_setting_that_is_not_allowed_is_not_shown(place: Place, home: Path):
    bus = place()
    Path(bus.config_path).write_text('{"inspection_command": "run --token s3cret"}')
    told = Doctor(bus, home)()
    assert "inspection_command is not shown here" in told.of("configuration", "problem")
    assert "s3cret" not in told.text


def test_a_configuration_that_is_not_there_although_it_is_named(place: Place, home: Path):
    told = Doctor(place(), home)("--config", str(home / "none.json"))
    assert "no such file" in told.of("configuration", "problem")


def test_no_redis(place: Place, home: Path):
    bus = place(redis_executable="no-such-server")
    doctor = Doctor(bus, home)
    doctor.connect()
    assert "no-such-server" in doctor().problem("redis")


def test_a_redis_that_is_too_old(place: Place, home: Path):
    old = program(home / "redis", "echo 'Redis server v=6.2.14 sha=0 malloc=libc bits=64'")
    doctor = Doctor(place(redis_executable=old), home)
    doctor.connect()
    told = doctor().problem("redis")
    assert "6.2.14" in told
    assert "name another one" in told


def test_a_redis_that_never_answers_is_not_waited_for(place: Place, home: Path):
    hanging = program(home / "redis", "exec /bin/sleep 600")
    doctor = Doctor(place(redis_executable=hanging), home)
    doctor.connect()
    assert "does not answer" in doctor().problem("redis")


def test_an_inspection_hook_that_is_gone(place: Place, home: Path):
    hook = program(home / "hook", "exit 0")
    doctor = Doctor(place(inspection_command=[hook, "--token", "s3cret"]), home)
    doctor.connect()
    assert hook in doctor().of("inspection hook", "ok")
    os.unlink(hook)
    told = doctor()
    assert hook in told.problem("inspection hook")
    assert "s3cret" not in told.text


def test_a_directory_that_was_removed_under_the_shell(place: Place, home: Path):
    doctor = Doctor(place(), home)
    doctor.connect()
    gone = home / "gone"
    gone.mkdir()
    command = f"rmdir {gone}; exec {sys.executable} -P -m agentbus doctor"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=doctor.environment | {"PATH": "/usr/bin:/bin"},
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_few_open_files(place: Place, home: Path):
    doctor = Doctor(place(), home)
    doctor.connect()
    command = f"ulimit -n 256; exec {sys.executable} -m agentbus doctor"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=doctor.environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == 0
    assert "may open 256 files" in done.stdout
    assert "ulimit" in done.stdout


def test_a_repository_whose_file_cannot_be_used(place: Place, home: Path):
    doctor = Doctor(place(), home)
    doctor.connect()
    (home / "work/.agentbus.json").write_text('{"agnet": "Sam"}')
    assert ".agentbus.json" in doctor().problem("repository")
