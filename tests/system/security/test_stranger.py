"""A daemon of another user's is told nothing, where it has got hold of our socket's place."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter

STRANGER = 65534

LISTEN = """
import os, socket, sys
path, uid = sys.argv[1], int(sys.argv[2])
os.setgid(uid)
os.setuid(uid)
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
print("listening", flush=True)
while True:
    peer, _ = server.accept()
    data = peer.recv(65536)
    print("heard " + str(len(data)), flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_an_adapter_tells_a_strangers_daemon_nothing() -> None:
    with Daemon() as bus:
        os.mkdir(bus.paths.runtime_directory, 0o777)
        os.chmod(bus.paths.runtime_directory, 0o777)
        os.chmod(bus.directory, 0o755)
        command = [sys.executable, "-I", "-c", LISTEN, bus.paths.socket, str(STRANGER)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as stranger:
            assert stranger.stdout is not None
            assert stranger.stdout.readline() == b"listening\n"
            with Adapter(bus.environment) as adapter:
                result = adapter.ask(
                    "tools/call", name="send", arguments={"channel": "general", "content": "secret"}
                )
                error = result["structuredContent"]["error"]
            status = subprocess.run(
                [sys.executable, "-m", "agentbus", "status"],
                env=bus.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            with socket.socket(socket.AF_UNIX) as own:  # it listens still, and hears us now
                own.connect(bus.paths.socket)
                own.sendall(b"12345")
                heard = iter(stranger.stdout.readline, b"heard 5\n")
                assert set(heard) <= {b"heard 0\n"}
            stranger.kill()
        os.unlink(bus.paths.socket)
    assert error["code"] == "unsafe_permissions"
    assert str(STRANGER) in error["message"]
    assert status.returncode != 0
    assert "unsafe_permissions" in status.stderr
