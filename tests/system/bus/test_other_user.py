"""Another user of the machine, a real one: needs the right to become one, which root has."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import pytest

from tests.support.daemon import Daemon

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

HELLO = b'{"jsonrpc":"2.0","id":1,"method":"status","params":{}}\n'

CUT_OFF, ANSWERED, KEPT_OUT, FAILED = range(4)


def as_nobody(act: Callable[[], int]) -> int:
    """What comes of it in a process of the other user."""
    pid = os.fork()
    if pid == 0:
        code = FAILED
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ask(path: str) -> int:
    """Sends a line that needs no greeting; whether anything came back."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(20)
        try:
            peer.connect(path)
            peer.sendall(HELLO)
            return ANSWERED if peer.recv(1) else CUT_OFF
        except PermissionError:
            return KEPT_OUT
        except (BrokenPipeError, ConnectionResetError):
            return CUT_OFF


def test_another_user_is_kept_out_and_where_the_doors_are_open_cut_off(bus: Daemon) -> None:
    path = bus.paths.socket
    assert ask(path) == ANSWERED
    assert as_nobody(lambda: ask(path)) == KEPT_OUT
    doors = [(bus.directory, 0o755), (os.path.dirname(path), 0o755), (path, 0o666)]
    before = [(each, os.stat(each).st_mode & 0o777) for each, _ in doors]
    try:
        for each, mode in doors:
            os.chmod(each, mode)
        assert as_nobody(lambda: ask(path)) == CUT_OFF
        assert ask(path) == ANSWERED
    finally:
        for each, mode in before:
            os.chmod(each, mode)
