"""Forking a service."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
from collections.abc import Callable, Iterable
from typing import Final, NoReturn

import msgspec

from agentbus.config import Configuration
from agentbus.runtime import exits, logs, platform
from agentbus.runtime.context import ChildContext
from agentbus.runtime.paths import Paths
from agentbus.supervisor.services import Service

_log = logs.get(__name__)

_DEFAULT: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_STANDARD: Final = (0, 1, 2)


class Inheritance(msgspec.Struct, frozen=True):
    """What a child gets. `locks` stay open in it on purpose: a new daemon waits for its end."""

    control: socket.socket
    links: dict[str, socket.socket]
    listener: socket.socket | None
    locks: tuple[int, ...]

    def descriptors(self) -> set[int]:
        """Everything that is to stay open."""
        sockets = [self.control, *self.links.values()]
        if self.listener is not None:
            sockets.append(self.listener)
        return {sock.fileno() for sock in sockets} | set(self.locks)


def fork(
    service: Service,
    configuration: Configuration,
    paths: Paths,
    inheritance: Inheritance,
    abandon: Callable[[], None],
) -> int:
    """The pid of a new child that runs the service's entry point. Raises OSError.

    `abandon` is called in the child: it closes what the supervisor's own objects hold. The entry
    point is imported by the child, so that the supervisor never loads what services need.
    """
    parent = os.getpid()
    gc.freeze()
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _become(service, configuration, paths, inheritance, abandon, parent, blocked)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _become(
    service: Service,
    configuration: Configuration,
    paths: Paths,
    inheritance: Inheritance,
    abandon: Callable[[], None],
    parent: int,
    mask: Iterable[int],
) -> NoReturn:
    """Never returns into the supervisor's code."""
    code = exits.CRASHED
    try:
        _reset_signals(mask)
        platform.die_with_parent(parent)
        logs.configure(service.name, paths, configuration.settings)
        abandon()
        close_others(inheritance.descriptors())
        platform.set_title(f"agentbus: {service.name}")
        context = ChildContext(
            name=service.name,
            settings=configuration.settings,
            config_path=configuration.path,
            paths=paths,
            control=inheritance.control,
            links=inheritance.links,
            listener=inheritance.listener,
        )
        code = run(service.entry, context)
    except BaseException as error:  # noqa: BLE001 - nothing may unwind into the parent's frames
        _log.crash("crashed", error, during="entry")
    finally:
        logs.close()
        os._exit(code)


def run(entry: str, context: ChildContext) -> int:
    """Imports and calls an entry point, `module:function`."""
    module, _, function = entry.partition(":")
    return int(getattr(importlib.import_module(module), function)(context))


def _reset_signals(mask: Iterable[int]) -> None:
    """SIGTERM ends a child; a Ctrl-C goes to the whole group and is the supervisor's to handle."""
    signal.set_wakeup_fd(-1)
    for number in _DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def close_others(keep: Iterable[int]) -> None:
    """Closes every descriptor but the standard ones and these.

    A copy left open anywhere would keep a link's other end from ever reading the end of file.
    """
    kept = {*_STANDARD, *keep}
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the directory's own, closed by now
                continue
