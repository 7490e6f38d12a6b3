"""Writes the pages of docs/reference/ that are made from the code.

python contrib/reference.py            writes them
python contrib/reference.py --check    exit code 1 where one is not what would be written
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NewType, Union

import msgspec

from typer.main import get_command

from agentbus import config, errors
from agentbus.adapter import tools as adapter_tools
from agentbus.cli.app import app
from agentbus.wire import error_codes, rpc

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Made by contrib/reference.py from {source}; change that, not this. -->\n"


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    return {
        "commands.md": commands(),
        "tools.md": tools(),
        "protocol.md": protocol(),
        "configuration.md": configuration(),
        "errors.md": error_page(),
    }


# ---- the adapter protocol ------------------------------------------------------------------------


def protocol() -> str:
    """Every method and notification, from `agentbus.wire.rpc`."""
    parts = [
        NOTE.format(source="agentbus/wire/rpc.py"),
        "# The adapter protocol\n",
        f"{_prose(rpc.__doc__).partition('The classes below')[0].strip()} Absent members take the\n"
        "defaults.\n",
        f"Protocol number {rpc.PROTOCOL}. A line has at most {rpc.MAX_LINE // 1024**2} MiB, its "
        "newline included. How to try it by hand: [by hand](../how-to/by-hand.md).\n",
        "## Methods\n",
        *(_method(name, *shapes) for name, shapes in rpc.METHODS.items()),
        "## Notifications\n",
        *(_notification(name, shape) for name, shape in rpc.NOTIFICATIONS.items()),
        "## Shapes inside these\n",
        *(_shape(shape, 3) for shape in _inner_shapes()),
    ]
    return "\n".join(parts)


def _method(name: str, params: type[rpc.Params], result: type[rpc.Params]) -> str:
    return f"### `{name}`\n\n{_member_list('Params', params)}\n{_member_list('Result', result)}"


def _notification(name: str, params: type[rpc.Params]) -> str:
    return f"### `{name}`\n\n{_member_list('Params', params)}"


def _member_list(title: str, shape: type[msgspec.Struct]) -> str:
    text = f"**{title}.** {_prose(shape.__doc__)}\n"
    return f"{text}\n{_members(shape)}" if shape.__struct_fields__ else text


def _shape(shape: type[msgspec.Struct], level: int) -> str:
    return f"{'#' * level} {shape.__name__}\n\n{_prose(shape.__doc__)}\n\n{_members(shape)}"


def _members(shape: type[msgspec.Struct]) -> str:
    hints = typing.get_type_hints(shape)
    rows = (
        (f"`{field.name}`", _type(hints[field.name]), _default(field))
        for field in msgspec.structs.fields(shape)
    )
    return _table(("member", "type", "if absent"), rows)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default_factory()).decode()}`"
    return f"`{msgspec.json.encode(field.default).decode()}`"


def _type(hint: Any) -> str:
    """A type as JSON people call it."""
    if isinstance(hint, NewType):
        return _type(hint.__supertype__)
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(argument) for argument in arguments)
    if origin is Literal:
        return " or ".join(f'`"{argument}"`' for argument in arguments)
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin is tuple:
        return f"[{', '.join(_type(argument) for argument in arguments)}]"
    if origin is dict:
        return f"object of {_type(arguments[1])}"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    return NAMES[hint]


NAMES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Any: "any",
    msgspec.Raw: "envelope",
}


def _inner_shapes() -> list[type[msgspec.Struct]]:
    """Structs that members refer to, in the order of their first mention."""
    outer = [shape for pair in rpc.METHODS.values() for shape in pair]
    found: dict[type[msgspec.Struct], None] = {}
    for shape in [*outer, *rpc.NOTIFICATIONS.values()]:
        for hint in typing.get_type_hints(shape).values():
            found.update(dict.fromkeys(_structs(hint)))
    return [shape for shape in found if shape not in outer]


def _structs(hint: Any) -> list[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [shape for argument in typing.get_args(hint) for shape in _structs(argument)]


# ---- settings ------------------------------------------------------------------------------------


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
            _table(("setting", "default", "allowed", "meaning"), rows),
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
| operations of one session waiting for acceptance | 64, or 8 MiB |
| log files of each process | 4 of 16 MiB |
"""


# ---- errors --------------------------------------------------------------------------------------


def error_page() -> str:
    """Every code, from `agentbus.errors`."""
    parts = [
        NOTE.format(source="agentbus/errors.py"),
        "# Errors\n",
        ERRORS,
        *(_error_group(group) for group in errors.AgentbusError.__subclasses__()),
        PROTOCOL_ERRORS,
    ]
    return "\n".join(parts)


def _error_group(group: type[errors.AgentbusError]) -> str:
    rows = (
        (f"`{code}`", "yes" if kind.retryable else "no", _prose(kind.__doc__), ADVICE[code])
        for code, kind in errors.BY_CODE.items()
        if issubclass(kind, group)
    )
    heading = f"## {_prose(group.__doc__).rstrip('.')}\n"
    return f"{heading}\n{_table(('code', 'try again', 'means', 'what to do'), rows)}"


ERRORS = """\
An agent gets an error as a tool result with `isError` and
`{"error": {"code", "message", "reason", "retryable", "retry_after_ms"}}`; a program on the socket
as a JSON-RPC error with the same object in `data`; a command prints `agentbus: CODE: MESSAGE` on
stderr and exits with 1. The message names the value at fault and what to do; `reason` is the
inspection hook's own text; `retry_after_ms` is the least time to wait.

`try again` tells whether the same request can succeed later without anybody changing something.
"""

ADVICE: dict[str, str] = {
    "invalid_argument": "Read the message: it names the argument and what is allowed.",
    "not_found": "Look at `list_channels`; create the channel first.",
    "channel_kind_conflict": "Choose another name, or leave `kind` out.",
    "operation_id_conflict": "Use a fresh `message_id` for a new message.",
    "message_too_large": "Send a reference to the data, or raise `max_message_kib`.",
    "inspection_rejected": "Change the message as `reason` says; it is not retried.",
    "discovery_disabled": "Set `discovery_enabled` to true and restart, if you want it.",
    "rate_limited": "Wait `retry_after_ms`, then send again with the same `message_id`.",
    "inspection_unavailable": "Mend the inspection hook (see the log); then send again.",
    "storage_error": "Look at the disk (full, read-only?); nothing of the request was stored.",
    "recovering": "Nothing: the adapter retries for 30 s by itself.",
    "unavailable": "Nothing: the adapter retries for 30 s by itself; then `agentbus status`.",
    "capacity_exhausted": "Raise the budget that the message names and restart.",
    "stale_attachment": "Nothing: the adapter attaches again by itself.",
    "session_already_connected": "End the other program that uses this session.",
    "config_invalid": "Correct the file that the message names; see "
    "[configuration](configuration.md).",
    "config_mismatch": "`agentbus stop`, so that the next start reads the present file.",
    "version_mismatch": "`agentbus stop`, so that the next start runs the installed version.",
    "redis_missing": "Install Redis or Valkey as the message says, or the extra `server`.",
    "redis_incompatible": "Install a newer one, or name another with `redis_executable`.",
    "database_damaged": "Restore a copy of the data directory, or move it away to begin anew.",
    "unsafe_permissions": "Run the `chmod` that the message gives, or choose another directory.",
    "not_running": "`agentbus daemon`, or any tool call of an agent, starts it.",
    "internal": "Report it, with the log files of `data_directory`.",
}

PROTOCOL_ERRORS = f"""\
## Errors of the protocol itself

On the socket, what is no proper request gets the numbers of JSON-RPC, without `data`, and the
connection goes on.

| number | means |
|---|---|
| {error_codes.PARSE_ERROR} | the line is not JSON, or longer than 8 MiB |
| {error_codes.INVALID_REQUEST} | it is JSON, but no request |
| {error_codes.METHOD_NOT_FOUND} | there is no such method |
| {error_codes.INVALID_PARAMS} | the params do not have the method's shape |
| {error_codes.APPLICATION_ERROR} | see `data.code`: one of those above |
"""


# ---- commands ------------------------------------------------------------------------------------


def commands() -> str:
    """Every command, from the application itself."""
    application = get_command(app)
    parts = [NOTE.format(source="agentbus/cli"), "# Commands\n", COMMANDS]
    parts += (_command(path, command) for path, command in _walk(application, ()))
    return "\n".join(parts)


def _walk(command: Any, path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    subcommands = getattr(command, "commands", None)
    if subcommands is None:
        yield path, command
    for name, subcommand in (subcommands or {}).items():
        yield from _walk(subcommand, (*path, name))


def _command(path: tuple[str, ...], command: Any) -> str:
    rows = [
        (
            f"`{', '.join(option.opts)}{f' {option.metavar}' if option.metavar else ''}`",
            option.help or "",
        )
        for option in command.params
        if not option.hidden and "--help" not in option.opts
    ]
    text = f"## `agentbus {' '.join(path)}`\n\n{command.help}\n"
    return f"{text}\n{_table(('option', 'meaning'), rows)}" if rows else text


COMMANDS = """\
`agentbus --help` and `agentbus COMMAND --help` say the same in the terminal; `agentbus --version`
prints the version.

| exit code | means |
|---|---|
| 0 | done; for `status`: ready |
| 1 | an error; one line on stderr says its [code](errors.md) and what to do |
| 2 | the command line was wrong |
| 3 | `status`: nothing runs |
| 4 | `status`: it runs, but does not take messages at the moment |

With `--json` there is one JSON document on stdout and nothing else.
"""


# ---- tools ---------------------------------------------------------------------------------------


def tools() -> str:
    """Every MCP tool, from the table that the adapter serves."""
    parts = [NOTE.format(source="agentbus/adapter/tools.py"), "# Tools\n", TOOLS]
    parts += (_tool(tool) for tool in adapter_tools.table(config.Settings()))
    return "\n".join(parts)


def _tool(tool: Any) -> str:
    schema = tool.input_schema
    rows = [
        (
            f"`{name}`",
            "yes" if name in schema.get("required", ()) else "",
            _json_type(rule),
            rule.get("description", ""),
        )
        for name, rule in schema["properties"].items()
    ]
    text = f"## `{tool.name}`\n\n{tool.description}\n"
    text += f"\n{_table(('argument', 'required', 'is', 'meaning'), rows)}" if rows else ""
    members = ", ".join(f"`{name}`" for name in tool.output_schema["properties"])
    return f"{text}\nResult: {members}.\n"


def _json_type(rule: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "enum" in rule:
        return " or ".join(f'`"{choice}"`' for choice in rule["enum"])
    if rule["type"] == "array":
        return f"list of {_json_type(rule['items'])}"
    if rule["type"] == "object" and rule.get("properties"):
        members = (f"`{name}`: {_json_type(member)}" for name, member in rule["properties"].items())
        return f"{{{', '.join(members)}}}"
    low, high = rule.get("minimum"), rule.get("maximum")
    bounds = f", {low} to {high}" if high is not None else f" from {low}" if low is not None else ""
    return f"{rule['type']}{bounds}"


TOOLS = """\
What an agent sees of `agentbus mcp`. Every result is one JSON document, both as structured content
and as text; a failure is a result with `isError` and an [error](errors.md) in it. The numbers below
are those of the default [configuration](configuration.md).
"""


# ---- text ----------------------------------------------------------------------------------------


def _prose(docstring: str | None) -> str:
    """A docstring as markdown, which ours nearly are."""
    return inspect.cleandoc(docstring or "")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    cells = ([cell.replace("\n", " ").replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def main(arguments: list[str]) -> int:
    """Exit code."""
    stale = [
        name
        for name, text in pages().items()
        if not (REFERENCE / name).exists() or (REFERENCE / name).read_text() != text
    ]
    if "--check" in arguments:
        for name in stale:
            print(f"docs/reference/{name} is out of date: python contrib/reference.py")
        return int(bool(stale))
    for name in stale:
        REFERENCE.mkdir(parents=True, exist_ok=True)
        (REFERENCE / name).write_text(pages()[name])
        print(f"wrote docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
