"""What is sent reaches an inspection hook as one JSON object on its stdin, and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from tests.support.daemon import Daemon, wait
from tests.support.stdio import Adapter

MARK = "zyxxy-secret"

HOOK = """
import json, os, sys, time
seen = json.load(sys.stdin)
with open({record!r}, "a") as record:
    record.write(json.dumps([sys.argv, dict(os.environ), seen["payload"]]) + "\\n")
if "slow" in seen["payload"]["content"]:
    time.sleep(3)
print(json.dumps({{"decision": "allow"}}))
"""

NASTY = (
    "$(touch {file})",
    "`touch {file}`",
    "; touch {file} #",
    "' && touch {file} && '",
    '" || touch {file} "',
    "| tee {file}",
    "\n touch {file}\n",
    "--help > {file}",
    "${{IFS}}touch {file}",
)


class Hooked(Daemon):
    """Its hook notes what it is given; its argument is shell text that nobody is to run."""

    def __init__(self) -> None:
        super().__init__()
        self.record = Path(self.directory, "record")
        self.argument = f"$(touch {self.directory}/made-by-argument)"
        hook = Path(self.directory, "hook.py")
        hook.write_text(HOOK.format(record=str(self.record)))
        document = msgspec.json.decode(Path(self.config_path).read_bytes())
        document["inspection_command"] = [sys.executable, "-I", str(hook), self.argument]
        Path(self.config_path).write_bytes(msgspec.json.encode(document))


@pytest.fixture
def bus() -> Iterator[Hooked]:
    with Hooked() as daemon:
        daemon.start()
        yield daemon


def test_no_shell_sees_what_is_sent(bus: Hooked) -> None:
    target = os.path.join(bus.directory, "made-by-content")
    sent = [each.format(file=target) for each in NASTY]
    with Adapter(bus.environment) as adapter:
        for content in sent:
            told = {"content": content, "type": content.strip()[:40], "metadata": {"k": content}}
            adapter.call("send", channel="general", **told)
            adapter.call("search", query=content)
    records = [msgspec.json.decode(line) for line in bus.record.read_text().splitlines()]
    assert [payload["content"] for _, _, payload in records] == sent
    for argv, environment, _ in records:
        assert argv[1:] == [bus.argument]
        assert target not in str(environment)
    assert [name for name in os.listdir(bus.directory) if name.startswith("made")] == []


def test_no_process_shows_what_is_sent_to_who_lists_processes(bus: Hooked) -> None:
    """Arguments can be seen by every user of the machine, environments by every program of ours."""
    with Adapter(bus.environment) as adapter:
        arguments = {"channel": "general", "content": f"{MARK} slow"}
        asked = adapter.request("tools/call", name="send", arguments=arguments)
        assert wait(bus.record.exists)  # the hook runs now
        shown = processes(bus)
        assert any("hook.py" in text for text in shown)
        assert [text for text in shown if MARK in text] == []
        assert adapter.structured(adapter.answer(asked)["result"])["message_id"]
        assert [text for text in processes(bus) if MARK in text] == []
        assert MARK not in str(bus.status())


def processes(bus: Daemon) -> list[str]:
    """Arguments and environment of every process of a bus, its adapters and hooks."""
    place = bus.environment["AGENTBUS_RUNTIME_DIR"]
    shown = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            environment = process.environ()
            if environment.get("AGENTBUS_RUNTIME_DIR") == place:
                shown.append(f"{process.cmdline()} {environment}")
    return shown
