"""Every error that agentbus reports to somebody, as one tree.

    AgentbusError
    ├── RequestError            the caller's fault: asking again won't help
    │   ├── InvalidArgument
    │   ├── NotFound
    │   ├── ChannelKindConflict
    │   ├── OperationIdConflict
    │   ├── MessageTooLarge
    │   ├── InspectionRejected
    │   └── DiscoveryDisabled
    ├── BusyError               nobody's fault; the bus cannot do it now
    │   ├── RateLimited             retryable, says when
    │   ├── InspectionUnavailable   retryable
    │   ├── StorageFailed           retryable
    │   ├── Recovering              retryable, the adapter retries by itself
    │   ├── Unavailable             retryable, the adapter retries by itself
    │   └── CapacityExhausted       not until somebody makes room
    ├── AttachmentError         the claim on a session is not (or no longer) the caller's
    │   ├── StaleAttachment         retryable after attaching again
    │   └── SessionAlreadyConnected retryable until the other attachment expires
    ├── SetupError              the machine or its configuration must be mended by a person
    │   ├── ConfigInvalid, ConfigMismatch, VersionMismatch
    │   ├── RedisMissing, RedisIncompatible
    │   ├── DatabaseDamaged, UnsafePermissions
    │   └── NotRunning
    └── InternalError           a fault of agentbus itself

`code` is the name users and programs see (the contract's table of codes); `wire.error_codes`
is the only place that turns these into wire errors and back.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "BY_CODE",
    "AgentbusError",
    "AttachmentError",
    "BusyError",
    "CapacityExhausted",
    "ChannelKindConflict",
    "ConfigInvalid",
    "ConfigMismatch",
    "DatabaseDamaged",
    "DiscoveryDisabled",
    "InspectionRejected",
    "InspectionUnavailable",
    "InternalError",
    "InvalidArgument",
    "MessageTooLarge",
    "NotFound",
    "NotRunning",
    "OperationIdConflict",
    "RateLimited",
    "Recovering",
    "RedisIncompatible",
    "RedisMissing",
    "RequestError",
    "SessionAlreadyConnected",
    "SetupError",
    "StaleAttachment",
    "StorageFailed",
    "Unavailable",
    "UnsafePermissions",
    "VersionMismatch",
]


class AgentbusError(Exception):
    """What happened, whose fault it is (the class) and what to do (in `message`).

    `reason` is somebody else's explanation, passed on as given (the inspection hook's);
    `retry_after_ms` is a lower bound on when trying again can succeed.
    """

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, reason: str | None = None, retry_after_ms: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.retry_after_ms = retry_after_ms

    @property
    def line(self) -> str:
        """Code and message for a person's terminal: one line, and nothing that moves its cursor."""
        shown = (letter if letter.isprintable() else " " for letter in self.message)
        return f"{self.code}: {' '.join(''.join(shown).split())}"


class RequestError(AgentbusError):
    """The caller's fault: the same request fails again."""


class InvalidArgument(RequestError):
    """A shape, identifier or number that is not allowed; names what is."""

    code = "invalid_argument"


class NotFound(RequestError):
    """A channel, message or memory of that name does not exist."""

    code = "not_found"


class ChannelKindConflict(RequestError):
    """The channel exists and is of the other kind, which never changes."""

    code = "channel_kind_conflict"


class OperationIdConflict(RequestError):
    """The id was used before, by another session or with another payload."""

    code = "operation_id_conflict"


class MessageTooLarge(RequestError):
    """The serialised envelope passes `max_message_kib`."""

    code = "message_too_large"


class InspectionRejected(RequestError):
    """The inspection hook said no; `reason` is the hook's."""

    code = "inspection_rejected"


class DiscoveryDisabled(RequestError):
    """The setting `discovery_enabled` is off."""

    code = "discovery_disabled"


class BusyError(AgentbusError):
    """The bus cannot do it now."""


class RateLimited(BusyError):
    """The session's rate, or the daemon's credit, is used up for the moment."""

    code = "rate_limited"
    retryable = True


class InspectionUnavailable(BusyError):
    """The inspection hook failed, hung or talked nonsense."""

    code = "inspection_unavailable"
    retryable = True


class StorageFailed(BusyError):
    """SQLite could not commit (disk full, read-only, I/O error): nothing of it is stored."""

    code = "storage_error"
    retryable = True


class Recovering(BusyError):
    """The projection is being brought up to date."""

    code = "recovering"
    retryable = True


class Unavailable(BusyError):
    """The daemon, or a part of it, is not there at the moment."""

    code = "unavailable"
    retryable = True


class CapacityExhausted(BusyError):
    """What cannot be evicted fills a budget."""

    code = "capacity_exhausted"


class AttachmentError(AgentbusError):
    """The claim on the session is not the caller's."""

    retryable = True


class StaleAttachment(AttachmentError):
    """The attachment or its epoch is over."""

    code = "stale_attachment"


class SessionAlreadyConnected(AttachmentError):
    """Another live attachment holds the session."""

    code = "session_already_connected"


class SetupError(AgentbusError):
    """A person must mend the machine or its configuration."""


class ConfigInvalid(SetupError):
    """The configuration file is not acceptable."""

    code = "config_invalid"


class ConfigMismatch(SetupError):
    """The running daemon has other settings."""

    code = "config_mismatch"


class VersionMismatch(SetupError):
    """The running daemon is of another version."""

    code = "version_mismatch"


class RedisMissing(SetupError):
    """No Redis or Valkey server was found."""

    code = "redis_missing"


class RedisIncompatible(SetupError):
    """The server found cannot serve the bus."""

    code = "redis_incompatible"


class DatabaseDamaged(SetupError):
    """SQLite says that the file is no sound database."""

    code = "database_damaged"


class UnsafePermissions(SetupError):
    """A directory or file could be read or replaced by somebody else."""

    code = "unsafe_permissions"


class NotRunning(SetupError):
    """No daemon runs."""

    code = "not_running"


class InternalError(AgentbusError):
    """A fault of agentbus itself."""

    code = "internal"


def _leaves(cls: type[AgentbusError]) -> list[type[AgentbusError]]:
    children = cls.__subclasses__()
    return [leaf for child in children for leaf in _leaves(child)] if children else [cls]


BY_CODE: dict[str, type[AgentbusError]] = {leaf.code: leaf for leaf in _leaves(AgentbusError)}
