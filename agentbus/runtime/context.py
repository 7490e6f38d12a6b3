"""What a forked child is given."""

from __future__ import annotations

import socket

import msgspec

from agentbus.config import Settings
from agentbus.runtime.paths import Paths


class Listening(msgspec.Struct, frozen=True):
    """An event for a child that accepts connections: the socket to accept from now on."""

    socket: socket.socket


class ChildContext(msgspec.Struct, frozen=True):
    """The argument of a service's entry point, `def run(context: ChildContext) -> int`.

    All sockets are non-blocking and belong to the child alone. `links` is by the names in
    `wire.links`; `listener` is there for services that serve the bus' socket, and listens already.
    """

    name: str
    settings: Settings
    config_path: str
    paths: Paths
    control: socket.socket
    links: dict[str, socket.socket]
    listener: socket.socket | None = None
