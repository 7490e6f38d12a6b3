"""What is said on the bus is in no log, whatever is done with it and whatever goes wrong."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter, ToolError
from tests.system.bus.conftest import FAST

MARK = "xyzzy"
"""In every text that is a person's or an agent's affair."""

HOOK = [
    sys.executable,
    "-Ic",
    f'import sys; t = sys.stdin.read(); print(\'{{"decision": "allow"}}\' '
    "if 'denied' not in t and 'odd' not in t "
    f'else \'{{"decision": "deny", "reason": "not nice"}}\' if \'denied\' in t else \'{MARK}\'); '
    f"sys.stderr.write('{MARK}')",
]


def attempt(adapter: Adapter, tool: str, **arguments: Any) -> dict[str, Any]:
    with suppress(ToolError):
        return adapter.call(tool, **arguments)
    return {}


def everything(adapter: Adapter) -> None:
    """Each tool that takes a text, in ways that are allowed and in such that are not."""
    told = {
        "content": f"{MARK} told",
        "type": MARK,
        "metadata": {MARK: MARK},
        "references": [{"kind": "url", "value": f"https://{MARK}.example/{MARK}"}],
    }
    for channel in ("general", "memory", "nowhere"):
        attempt(adapter, "send", channel=channel, **told)
    for content in (f"{MARK} denied", f"{MARK} odd", MARK * 20_000):
        attempt(adapter, "send", channel="general", content=content)
    memory = attempt(adapter, "send", channel="memory", **told)["memory_id"]
    for content in (f"{MARK} edited", f"{MARK} denied", f"{MARK} odd", MARK * 20_000):
        attempt(adapter, "memory_edit", memory_id=memory, content=content, metadata={MARK: 1})
    for query in (MARK, f'"{MARK}', f"-{MARK}", MARK * 1000):
        attempt(adapter, "search", query=query, order="relevance")
    attempt(adapter, "search", query=MARK, since=MARK)
    attempt(adapter, "memory_delete", memory_id=memory)
    for odd in (MARK, [MARK], {MARK: MARK}):
        attempt(adapter, "send", channel="general", content=odd, metadata=odd)
    attempt(adapter, "recv", wait_seconds=2)
    adapter.write(b'{"jsonrpc": "2.0", "id": 99, "method": "' + MARK.encode() + b'"\n')


def test_no_log_has_what_was_said_whatever_happened() -> None:
    with Daemon(**FAST, log_level="debug", inspection_command=HOOK) as bus:
        bus.start()
        with Adapter(bus.environment) as one, Adapter(bus.environment) as other:
            other.call("whoami")
            everything(one)
            with bus.peer() as peer:
                session = peer.attach("raw")
                peer.write(b'{"' + MARK.encode() + b'\n{"id": 7, "method": "send", "params": ')
                peer.write(b'{"content": "' + MARK.encode() + b'"}}\n')
                assert session.call("channel.list")["channels"]
            for process in ("writer", "projector", "gateway", "redis"):
                bus.kill(process)
                attempt(one, "send", channel="general", content=f"{MARK} after {process}")
            attempt(other, "recv", wait_seconds=5)
        bus.stop()
        logs = sorted(Path(bus.paths.log_directory).iterdir())
        assert {log.name for log in logs} >= {"gateway.log", "projector.log", "supervisor.log"}
        texts = {log.name: log.read_text(errors="replace") for log in logs}
        assert "inspection_rejected" in texts["gateway.log"]
        assert [name for name, text in texts.items() if MARK in text] == []
