"""`hello`: whether the two ends can understand each other."""

from __future__ import annotations

from typing import Final

from agentbus import __version__
from agentbus.config import Settings
from agentbus.errors import AgentbusError, ConfigMismatch, Unavailable, VersionMismatch
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Call
from agentbus.gateway.outbox import Outbox
from agentbus.wire.rpc import PROTOCOL, HelloParams, HelloResult

_NEWER: Final = (
    "the daemon is the older one and must be restarted: run `agentbus stop`; the next call starts "
    "one of the caller's version"
)
_OLDER: Final = (
    "the caller is the older one and must be restarted: restart its harness session (or only its "
    "MCP server `agentbus`), so that it runs the version that is installed now"
)


class Greeter:
    """Answers greetings, once it is known which bus this is."""

    def __init__(
        self, out: Outbox, condition: Condition, settings: Settings, config_path: str
    ) -> None:
        self._out = out
        self._condition = condition
        self._fingerprint = settings.fingerprint()
        self._config_path = config_path
        self._waiting: list[Call] = []

    def hello(self, call: Call, params: HelloParams) -> None:
        """Refuses those of another protocol, and of the same version with other settings."""
        self._require_protocol(params)
        self._require_settings(params)
        if self._condition.instance:
            self._welcome(call)
        elif self._condition.hindrance:
            raise self._condition.unready()
        else:
            self._waiting.append(call)

    def known(self) -> None:
        """The writer has said which bus this is: answers those who wait."""
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._welcome(call)

    def stop(self) -> None:
        """It will not be known any more."""
        self.refuse(Unavailable("the daemon is stopping"))

    def refuse(self, error: AgentbusError) -> None:
        """It is not known yet, and will not be soon."""
        waiting, self._waiting = self._waiting, []
        self._out.refuse_all(waiting, error)

    def _welcome(self, call: Call) -> None:
        call.connection.greeted = True
        result = HelloResult(
            protocol=PROTOCOL,
            version=__version__,
            instance=self._condition.instance,
            state=self._condition.state,
        )
        self._out.answer(call, result)

    def _require_protocol(self, params: HelloParams) -> None:
        if params.protocol == PROTOCOL:
            return
        newer = params.protocol > PROTOCOL
        raise VersionMismatch(
            f"the running daemon is agentbus {__version__} (protocol {PROTOCOL}), the caller is "
            f"{params.version[:64]!r} (protocol {params.protocol}): {_NEWER if newer else _OLDER}"
        )

    def _require_settings(self, params: HelloParams) -> None:
        if params.fingerprint is None or params.version != __version__:
            return
        if params.fingerprint != self._fingerprint:
            raise ConfigMismatch(
                f"the running daemon uses the settings of {self._config_path}, the caller those "
                f"of {(params.config_path or 'another file')[:1024]}, and they differ: run "
                "`agentbus stop`; the next call starts a daemon with the caller's settings"
            )
