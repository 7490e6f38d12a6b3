"""The page of the configuration, from `agentbus.config.Settings`."""

from __future__ import annotations

import msgspec

from agentbus import config
from reference.markdown import NOTE, table


def configuration() -> str:
    """Every setting, from `agentbus.config.Settings`."""
    document = config.schema()
    rows = (
        (
            f"`{key}`",
            f"`{msgspec.json.encode(rule['default']).decode()}`",
            config.allowed(key),
            rule["description"],
        )
        for key, rule in document["properties"].items()
    )
    return "\n".join(
        [
            NOTE.format(source="agentbus/config.py"),
            "# Configuration\n",
            CONFIGURATION,
            table(("setting", "default", "allowed", "meaning"), rows),
            AFTER_CONFIGURATION,
        ]
    )


CONFIGURATION = f"""\
One JSON object in one file: `{config.DEFAULT_PATH}`, or the file that the environment variable
`{config.CONFIG_VARIABLE}` names, or the one given with `--config PATH` (which wins). No file means
the defaults below. `agentbus config show` prints what holds and where it comes from;
`agentbus config schema` prints the JSON schema, for an editor.

The file is read once at start. An unknown key, a wrong type or a value that is not allowed is
refused with the key, the value and what is allowed; nothing is clamped. A leading `~/` is your
home, and relative paths are relative to the file. After a change: `agentbus stop`; the next use of
an agent, or `agentbus daemon`, starts the bus with it. Until then an adapter whose settings differ
from the running daemon's is refused with `config_mismatch`, which names both files.
"""

AFTER_CONFIGURATION = """
Two more rules: `recv_default_count` is not above `recv_max_count`, and the words of
`inspection_command` have at most 32 KiB together.

## Environment

`AGENTBUS_CONFIG` names the configuration file. `AGENTBUS_RUNTIME_DIR` names the directory of the
socket and the lock instead of `~/.local/state/agentbus`: for tests, and for buses side by side,
each of which needs a `data_directory` of its own too.

## Fixed values

| what | value |
|---|---|
| heartbeat of an adapter, and when its attachment expires without one | 10 s, 30 s |
| delivery reports are committed after | 20 ms or 100 reports |
| orderly stop: grace for the processes, and for a snapshot | 5 s, 30 s |
| automatic retry of an adapter, in all | 30 s |
| result ceiling, line ceiling | 4 MiB, 8 MiB |
| names (agents, channels, message ids) | 1 to 128 bytes of UTF-8, no control characters |
| new names of agents and channels | besides, only characters that are seen, in NFC (decision 21) |
| operations of one session waiting for acceptance | 64, or 8 MiB |
| rates: burst | one second's worth, in bytes at least one message of `max_message_kib` |
| a page of a list, of history or of a search | 100 unless asked otherwise, at most 1000 |
| a query | 4 KiB |
| inspection hooks: side by side, output of each on stdout and on stderr | 8, 64 KiB |
| notices that wait for one session | 64; the oldest go, and how many is told |
| an expired subscription is remembered until it was told, or for | 720 h |
| between two capacity warnings | 15 min |
| log files of each process | 4 of 16 MiB |
"""
