from __future__ import annotations

import os
import resource
import socket
import stat
import tempfile

import pytest

from agentbus.errors import UnsafePermissions
from agentbus.supervisor import listener


@pytest.fixture
def path():
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as base:
        yield f"{base}/bus.sock"


def test_it_listens_for_the_user_alone(path):
    with listener.listen(path) as listening, socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert not listening.getblocking()


def test_connections_wait_without_anybody_accepting(path):
    with listener.listen(path):
        clients = [socket.socket(socket.AF_UNIX) for _ in range(200)]
        for client in clients:
            client.setblocking(False)
            client.connect(path)
            client.close()


def test_a_stale_socket_is_replaced(path):
    listener.listen(path).close()
    listener.listen(path).close()


def test_something_that_cannot_be_removed_is_an_error_of_ours(path):
    os.mkdir(path)
    with pytest.raises(UnsafePermissions, match="in the way"):
        listener.listen(path)


def test_removing_twice_is_nothing(path):
    listener.listen(path).close()
    listener.remove(path)
    listener.remove(path)
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (1024, 4096, 4096),
        (1024, 1_000_000, 65536),
        (1024, resource.RLIM_INFINITY, 65536),
        (100_000, 1_000_000, 100_000),
        (1024, 1024, 1024),
    ],
)
def test_the_descriptor_limit_is_raised_as_far_as_it_goes(monkeypatch, soft, hard, expected):
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    assert listener.raise_descriptor_limit() == expected
    assert limits[-1] == (expected, hard)


def test_a_system_that_refuses_the_best_gets_the_second_best(monkeypatch):
    def refuse(_, limit):
        if limit[0] > 10240:
            raise ValueError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert listener.raise_descriptor_limit() == 10240
