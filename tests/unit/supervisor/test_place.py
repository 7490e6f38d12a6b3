from __future__ import annotations

import os
import shutil
import socket
import tempfile

import pytest

from agentbus.config import Settings
from agentbus.runtime import owners
from agentbus.runtime.paths import locate, prepare
from agentbus.supervisor import listener, locks
from agentbus.supervisor.place import Displaced, Place


@pytest.fixture
def paths():
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as base:
        settings = Settings(data_directory=f"{base}/d")
        found = locate(settings, {"AGENTBUS_RUNTIME_DIR": f"{base}/r"})
        prepare(found)
        yield found


@pytest.fixture
def place(paths):
    """Of a daemon that is this process."""
    place = Place(paths, locks.take(paths.lock), locks.take(paths.data_lock))
    yield place
    place.leave()
    for fd in place.locks:
        os.close(fd)


def reached(paths, place):
    """Whether somebody who connects is heard by the place."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(paths.socket)
        try:
            place.listening.accept()[0].close()
        except BlockingIOError:
            return False
    return True


def test_what_is_there_is_left_alone(paths, place):
    listening, held = place.listening, place.locks
    assert place.mend() is None
    assert (place.listening, place.locks) == (listening, held)


def test_a_removed_socket_is_bound_anew(paths, place):
    os.unlink(paths.socket)
    assert place.mend() is place.listening
    assert reached(paths, place)
    assert place.mend() is None


def test_another_programs_socket_is_replaced_by_who_has_the_lock(paths, place):
    os.unlink(paths.socket)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(paths.socket)
        assert place.mend() is not None
        assert reached(paths, place)


def test_a_removed_directory_is_made_and_locked_anew(paths, place):
    shutil.rmtree(paths.runtime_directory)
    assert place.mend() is not None
    assert reached(paths, place)
    assert locks.take(paths.lock) is None
    assert owners.read(paths.lock).pid == os.getpid()
    assert os.stat(paths.runtime_directory).st_mode & 0o777 == 0o700


def test_who_waits_for_our_data_with_the_lock_is_answered_and_leaves(paths, place):
    shutil.rmtree(paths.runtime_directory)
    prepare(paths)
    newcomer = locks.take(paths.lock)
    assert place.mend() is not None
    assert reached(paths, place)
    newcomer.close()
    assert place.mend() is None
    assert locks.take(paths.lock) is None


def test_a_daemon_that_serves_here_meanwhile_is_not_fought(paths, place):
    shutil.rmtree(paths.runtime_directory)
    prepare(paths)
    other = locks.take(paths.lock)
    other.write(owners.Owner(4711, paths.socket))
    with listener.listen(paths.socket):
        with pytest.raises(Displaced, match="process 4711 serves at"):
            place.mend()
        place.leave()
        assert os.path.exists(paths.socket)
    other.close()


def test_a_place_that_cannot_be_had_is_tried_again(paths, place):
    shutil.rmtree(paths.runtime_directory)
    os.symlink("/nowhere", paths.runtime_directory)
    assert place.mend() is None
    os.unlink(paths.runtime_directory)
    assert place.mend() is not None
    assert reached(paths, place)


def test_after_the_end_nothing_is_bound(paths, place):
    place.refuse()
    os.unlink(paths.socket)
    assert place.mend() is None
    assert not os.path.exists(paths.socket)
