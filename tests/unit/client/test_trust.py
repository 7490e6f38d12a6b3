"""A stranger's daemon is not told anything."""

from __future__ import annotations

import os
import socket

import pytest

from agentbus.client.trust import require_own
from agentbus.errors import UnsafePermissions
from agentbus.runtime import platform


def test_our_own_daemon_is_talked_to_and_a_strangers_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        require_own(ours, "/run/bus.sock")
        monkeypatch.setattr(platform, "peer_uid", lambda _sock: os.getuid() + 1)
        with pytest.raises(UnsafePermissions, match=r"/run/bus\.sock .*AGENTBUS_RUNTIME_DIR"):
            require_own(ours, "/run/bus.sock")
