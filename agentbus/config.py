"""Settings: one JSON file, read once at start, frozen, handed down.

Precedence is defaults, then the file. Nothing is clamped: an unknown key, a wrong type or a value
out of range is `ConfigInvalid` naming the key, the value and what is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from agentbus.digest import digest
from agentbus.errors import ConfigInvalid

MIB: Final = 1024 * 1024
KIB: Final = 1024

CONFIG_VARIABLE: Final = "AGENTBUS_CONFIG"
DEFAULT_PATH: Final = "~/.config/agentbus/config.json"

PRIVATE: Final = frozenset({"inspection_command"})
"""Settings that may hold a password: errors, which logs and reports repeat, do not show them."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Effective values. Units are in the names; the bounds are the file format's."""

    data_directory: Annotated[
        str, Meta(min_length=1, description="SQLite, Redis snapshot, search index, logs")
    ] = "~/.local/share/agentbus"
    redis_executable: Annotated[
        str, Meta(min_length=1, description="name or path of the Redis or Valkey server")
    ] = "redis-server"
    redis_budget_mib: Annotated[
        int, Meta(ge=64, le=65536, description="dataset of Redis plus indexed text bytes")
    ] = 512
    sqlite_budget_mib: Annotated[
        int, Meta(ge=64, le=1048576, description="logical row data, not file size")
    ] = 2048
    sqlite_synchronous: Annotated[
        Literal["full", "normal"],
        Meta(
            description="full: an accepted message survives power loss; normal: survives a crash "
            "of any process"
        ),
    ] = "full"
    message_retention_hours: Annotated[
        int, Meta(ge=1, le=8760, description="age limit of ordinary messages")
    ] = 168
    cleanup_free_percent: Annotated[
        int, Meta(ge=5, le=90, description="free target of a capacity cleanup")
    ] = 25
    cleanup_interval_seconds: Annotated[
        int, Meta(ge=5, le=3600, description="periodic cleanup")
    ] = 60
    cursor_idle_hours: Annotated[
        int, Meta(ge=1, le=720, description="subscription inactivity lifetime")
    ] = 72
    tombstone_min_hours: Annotated[
        int, Meta(ge=72, le=720, description="minimum age of a tombstone before purge")
    ] = 72
    dedup_retention_hours: Annotated[
        int,
        Meta(ge=1, le=720, description="receipt lifetime from first acceptance"),
    ] = 72
    max_message_kib: Annotated[
        int, Meta(ge=1, le=1024, description="whole serialised envelope")
    ] = 64
    send_messages_per_second: Annotated[
        int, Meta(ge=1, le=10000, description="per session; memory mutations count")
    ] = 100
    send_kib_per_second: Annotated[int, Meta(ge=64, le=65536, description="per session")] = 1024
    prefetch_messages: Annotated[int, Meta(ge=1, le=4096, description="per adapter")] = 256
    prefetch_mib: Annotated[
        int, Meta(ge=1, le=64, description="per adapter; at least one maximum envelope")
    ] = 4
    recv_default_count: Annotated[
        int, Meta(ge=1, le=1000, description="not above recv_max_count")
    ] = 100
    recv_max_count: Annotated[int, Meta(ge=1, le=10000, description="messages of one recv")] = 1000
    recv_max_wait_seconds: Annotated[
        int, Meta(ge=0, le=300, description="an omitted wait is 0")
    ] = 60
    result_default_kib: Annotated[
        int,
        Meta(
            ge=4,
            le=4096,
            description="byte ceiling of one recv, search or history result unless the call asks "
            "for more",
        ),
    ] = 48
    discovery_enabled: Annotated[
        bool, Meta(description="agent directory; off does not hide senders")
    ] = True
    inspection_command: Annotated[
        tuple[str, ...],
        Meta(max_length=64, description="argv of the inspection hook, run without a shell"),
    ] = ()
    inspection_timeout_seconds: Annotated[
        float, Meta(ge=0.1, le=60, description="may be fractional")
    ] = 5.0
    log_level: Annotated[
        Literal["debug", "info", "warn", "error"], Meta(description="payloads are never logged")
    ] = "info"

    def fingerprint(self) -> str:
        """Equal for equal effective settings; how an adapter and a daemon compare theirs."""
        return digest(msgspec.json.encode(self, order="deterministic"), 16).hex()


class Configuration(msgspec.Struct, frozen=True):
    """Settings and where they came from; `given` are the keys that the file sets."""

    settings: Settings
    path: str
    exists: bool
    given: tuple[str, ...] = ()


def load(path: str | os.PathLike[str] | None = None) -> Configuration:
    """Reads `path`, else the file of `AGENTBUS_CONFIG`, else the default one, which may be absent.

    Raises ConfigInvalid.
    """
    chosen = path or os.environ.get(CONFIG_VARIABLE)
    file = os.path.abspath(_at_home(os.fspath(chosen or DEFAULT_PATH)))
    try:
        with open(file, "rb") as document:
            raw = document.read()
    except FileNotFoundError:
        if chosen:
            remedy = "leave out --config" if path else f"unset {CONFIG_VARIABLE}, which names it"
            raise ConfigInvalid(f"{file}: no such file; create it or {remedy}") from None
        return Configuration(_resolve(Settings(), file), file, exists=False)
    except OSError as error:
        raise ConfigInvalid(f"{file} cannot be read: {error.strerror}") from error
    try:
        given, settings = _parse(file, raw)
    except RecursionError:
        raise ConfigInvalid(f"{file} is nested too deeply") from None
    return Configuration(_resolve(settings, file), file, exists=True, given=given)


def _parse(file: str, raw: bytes) -> tuple[tuple[str, ...], Settings]:
    if not raw.strip():
        raise ConfigInvalid(f"{file} is empty; it must hold one JSON object, which may be {{}}")
    try:
        document = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise ConfigInvalid(f"{file} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ConfigInvalid(f"{file} must hold one JSON object, not {type(document).__name__}")
    for key, value in document.items():
        check(file, key, value)
    settings = msgspec.convert(document, Settings)
    _check_paths(file, settings)
    _check_combinations(file, settings)
    return tuple(document), settings


def check(file: str, key: str, value: object) -> None:
    """Raises ConfigInvalid where one key of the file is unknown or its value is not allowed."""
    fields = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    if key not in fields:
        raise ConfigInvalid(f"{file}: {key} is not a setting{_near(key, fields)}")
    try:
        msgspec.convert(value, fields[key])
    except msgspec.ValidationError as error:
        what = msgspec.json.encode(value).decode()[:80]
        shown = "not shown here" if key in PRIVATE else what
        raise ConfigInvalid(
            f"{file}: {key} is {shown}, allowed is {allowed(key)} ({error})"
        ) from error


def _near(key: str, fields: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - heavy, and only for this text

    near = get_close_matches(key, fields, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{hint}; allowed are {', '.join(fields)}"


def allowed(key: str) -> str:
    """What a setting may be, as text for people."""
    rule = schema()["properties"][key]
    if "enum" in rule:
        return " or ".join(f'"{choice}"' for choice in rule["enum"])
    if "minimum" in rule:
        kind = "a whole number" if rule["type"] == "integer" else "a number"
        return f"{kind} from {rule['minimum']} to {rule['maximum']}"
    names = {"string": "a non-empty string", "boolean": "true or false"}
    return names.get(rule["type"], "a list of at most 64 strings, 32 KiB in all")


def schema() -> dict[str, Any]:
    """The JSON schema of the file."""
    document: dict[str, Any] = msgspec.json.schema(Settings)["$defs"]["Settings"]
    return document | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agentbus configuration",
        "description": "Read once at start. Leave out what shall have its default.",
    }


def _check_paths(file: str, settings: Settings) -> None:
    """The operating system takes no NUL in paths and arguments."""
    for key in ("data_directory", "redis_executable", "inspection_command"):
        if "\0" in "".join(getattr(settings, key)):
            raise ConfigInvalid(f"{file}: {key} contains a NUL character, which is not allowed")


def _check_combinations(file: str, settings: Settings) -> None:
    if settings.recv_default_count > settings.recv_max_count:
        raise ConfigInvalid(
            f"{file}: recv_default_count is {settings.recv_default_count}, allowed is at most "
            f"recv_max_count, which is {settings.recv_max_count}"
        )
    command = sum(len(part.encode()) for part in settings.inspection_command)
    if command > 32 * KIB:
        raise ConfigInvalid(
            f"{file}: inspection_command has {command} bytes, allowed is at most {32 * KIB}"
        )


def _resolve(settings: Settings, file: str) -> Settings:
    """Paths made absolute: `~/` is the home, relative ones are relative to the file."""

    def absolute(path: str) -> str:
        return os.path.normpath(os.path.join(os.path.dirname(file), _at_home(path)))

    redis, command = settings.redis_executable, settings.inspection_command
    if "/" in redis:
        redis = absolute(redis)
    if command and "/" in command[0]:
        command = (absolute(command[0]), *command[1:])
    data = os.path.realpath(absolute(settings.data_directory))
    return msgspec.structs.replace(
        settings, data_directory=data, redis_executable=redis, inspection_command=command
    )


def _at_home(path: str) -> str:
    found = os.path.expanduser(path)
    if found.startswith("~"):
        raise ConfigInvalid(f"{path}: there is no home directory; set HOME")
    return found
