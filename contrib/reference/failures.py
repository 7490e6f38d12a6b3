"""The page of the errors, from `agentbus.errors`."""

from __future__ import annotations

from agentbus import errors
from agentbus.wire import error_codes
from reference.markdown import NOTE, prose, table


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
        (f"`{code}`", "yes" if kind.retryable else "no", prose(kind.__doc__), ADVICE[code])
        for code, kind in errors.BY_CODE.items()
        if issubclass(kind, group)
    )
    heading = f"## {prose(group.__doc__).rstrip('.')}\n"
    return f"{heading}\n{table(('code', 'try again', 'means', 'what to do'), rows)}"


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

On the socket, what is no proper request gets the numbers of JSON-RPC, and the connection goes on.

| number | means |
|---|---|
| {error_codes.PARSE_ERROR} | the line is not JSON |
| {error_codes.INVALID_REQUEST} | it is JSON, but no request; or it is longer than 8 MiB |
| {error_codes.METHOD_NOT_FOUND} | there is no such method |
| {error_codes.INVALID_PARAMS} | the params do not fit the method, or hold a lone surrogate |
| {error_codes.APPLICATION_ERROR} | see `data.code`: one of those above |
"""
