"""The inspection command as real programs: what they may do, and what is left of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import time
from pathlib import Path

import msgspec
import pytest

from agentbus.gateway.events import Inspect, Inspected
from agentbus.gateway.programs import OUTPUT_BYTES, Programs
from tests.integration.gateway.conftest import run_loop, until


def program(place: Path, body: str) -> tuple[str, ...]:
    """A hook in Python."""
    path = place / "hook.py"
    path.write_text(f"import json, os, sys, time\n{body}\n")
    return (sys.executable, "-S", "-E", str(path))


def inspect(command: tuple[str, ...], *documents: bytes, seconds: float = 20.0) -> list[Inspected]:
    """What each run ended with, in the order of their beginning."""
    ended: list[Inspected] = []

    async def run() -> None:
        programs = Programs(command, ended.append)
        for ref, document in enumerate(documents or (b"{}",)):
            programs.run(Inspect(ref, document, seconds))
        await until(lambda: len(ended) == len(documents or (b"",)))
        await programs.close()

    run_loop(run())
    return sorted(ended, key=lambda each: each.ref)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- what it gets and says


def test_it_reads_the_document_and_its_output_is_the_answer(tmp_path: Path) -> None:
    echo = program(tmp_path, "sys.stdout.write(sys.stdin.read()); print('note', file=sys.stderr)")
    document = msgspec.json.encode({"content": "é \u2028" * 100_000})
    (ended,) = inspect((*echo,), document[:60_000])
    assert ended == Inspected(0, document[:60_000])


def test_arguments_reach_it_as_they_are_without_a_shell(tmp_path: Path) -> None:
    arguments = ("$HOME", "a b", "*", "; touch /tmp/x", "`id`", "é")
    show = program(tmp_path, "json.dump(sys.argv[1:], sys.stdout)")
    (ended,) = inspect((*show, *arguments))
    assert msgspec.json.decode(ended.output) == list(arguments)


def test_it_may_decide_without_reading(tmp_path: Path) -> None:
    hasty = program(tmp_path, "os.close(0); print('{}', end='')")
    (ended,) = inspect(hasty, b"x" * 1_000_000)
    assert ended == Inspected(0, b"{}")


def test_it_inherits_no_descriptor_and_runs_in_a_session_of_its_own(tmp_path: Path) -> None:
    body = (
        "print(sorted(os.listdir('/proc/self/fd'))[:4], os.getsid(0) == os.getpid(), os.getcwd())"
    )
    with open(os.devnull) as held:
        os.set_inheritable(held.fileno(), False)
        (ended,) = inspect(program(tmp_path, body))
    assert ended.output.decode().strip() == "['0', '1', '2', '3'] True /"


def test_many_run_side_by_side(tmp_path: Path) -> None:
    slow = program(tmp_path, "time.sleep(0.5); sys.stdout.write(sys.stdin.read())")
    began = time.monotonic()
    ended = inspect(slow, b"a", b"b", b"c", b"d")
    assert [each.output for each in ended] == [b"a", b"b", b"c", b"d"]
    assert time.monotonic() - began < 1.9


# ---- what it may not


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print('{}'); sys.exit(3)", "status 3"),
        ("raise ValueError", "status 1"),
        ("os.kill(os.getpid(), 9)", "signal 9"),
        (f"sys.stdout.write('x' * {OUTPUT_BYTES + 1}); sys.stdout.flush()", "64 KiB to stdout"),
        (f"sys.stderr.write('x' * {OUTPUT_BYTES + 1}); print('{{}}')", "64 KiB to stderr"),
        ("while True: os.write(1, b'x' * 65536)", "64 KiB to stdout"),
    ],
)
def test_anything_but_a_quiet_end_does_not_count(tmp_path: Path, body: str, said: str) -> None:
    (ended,) = inspect(program(tmp_path, body))
    assert said in ended.failure
    assert ended.output == b""


def test_exactly_what_is_allowed_is_taken(tmp_path: Path) -> None:
    (ended,) = inspect(program(tmp_path, f"os.write(1, b'x' * {OUTPUT_BYTES})"))
    assert len(ended.output) == OUTPUT_BYTES
    assert ended.failure == ""


def test_silence_is_not_waited_for_and_leaves_nothing_behind(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    body = f"""
child = os.fork()
if not child:
    time.sleep(600)
open({str(note)!r}, "w").write(f"{{os.getpid()}} {{child}}")
time.sleep(600)
"""
    (ended,) = inspect(program(tmp_path, body), seconds=1.5)
    assert ended.failure == "it did not end within 1.5 s"
    for pid in note.read_text().split():
        wait_until_gone(int(pid))


@pytest.mark.parametrize("kind", ["absent", "not executable", "a directory", "no program"])
def test_a_command_that_cannot_be_run_says_so(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "hook"
    if kind == "a directory":
        path.mkdir()
    elif kind != "absent":
        path.write_bytes(b"\x00nothing")
        path.chmod(stat.S_IRUSR | (stat.S_IXUSR if kind == "no program" else 0))
    (ended,) = inspect((str(path),))
    assert "could not be started" in ended.failure


def test_one_that_nobody_waits_for_ends_without_a_word(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    body = f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    ended: list[Inspected] = []

    async def run() -> None:
        programs = Programs(program(tmp_path, body), ended.append)
        programs.run(Inspect(1, b"{}", 60.0))
        await until(lambda: note.exists() and bool(note.read_text()))
        programs.stop(1)
        programs.stop(1)
        await asyncio.sleep(0.05)
        await programs.close()

    run_loop(run())
    wait_until_gone(int(note.read_text()))
    assert ended == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends it by itself")
def test_it_dies_with_the_gateway(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    body = f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    pid = os.fork()
    if pid == 0:

        async def run() -> None:
            Programs(program(tmp_path, body), print).run(Inspect(1, b"{}", 60.0))
            await until(lambda: note.exists() and bool(note.read_text()))
            os._exit(0)

        run_loop(run())
    os.waitpid(pid, 0)
    wait_until_gone(int(note.read_text()))
