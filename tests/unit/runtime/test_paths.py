from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import msgspec
import pytest

from agentbus.config import Settings
from agentbus.errors import UnsafePermissions
from agentbus.runtime import paths as module
from agentbus.runtime.paths import SOCKET_PATH_LIMIT, check_usable, locate, prepare


@pytest.fixture
def base():
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture
def paths(base):
    settings = Settings(data_directory=str(base / "data"))
    return locate(settings, {"AGENTBUS_RUNTIME_DIR": str(base / "run")})


def test_the_runtime_directory_is_in_the_home_whatever_else_the_environment_says():
    environ = {"HOME": "/home/sam", "XDG_RUNTIME_DIR": "/run/user/7", "TMPDIR": "/elsewhere"}
    paths = locate(Settings(data_directory="/data"), environ)
    assert paths.runtime_directory == "/home/sam/.local/state/agentbus"
    assert paths.socket == "/home/sam/.local/state/agentbus/bus.sock"


def test_the_variable_overrides_it():
    paths = locate(Settings(data_directory="/d"), {"AGENTBUS_RUNTIME_DIR": "/r", "HOME": "/h"})
    assert paths.socket == "/r/bus.sock"
    assert paths.lock == "/r/daemon.lock"


def test_the_variable_may_begin_with_the_home():
    paths = locate(Settings(data_directory="/d"), {"AGENTBUS_RUNTIME_DIR": "~/r", "HOME": "/h"})
    assert paths.runtime_directory == "/h/r"


def test_a_relative_variable_is_made_absolute():
    paths = locate(Settings(data_directory="/d"), {"AGENTBUS_RUNTIME_DIR": "r", "HOME": "/h"})
    assert paths.runtime_directory == os.path.abspath("r")


def test_without_a_home_the_user_database_is_asked():
    assert os.path.isabs(locate(Settings(data_directory="/d"), {}).runtime_directory)


def test_everything_durable_is_in_the_data_directory():
    paths = locate(Settings(data_directory="/d"), {"AGENTBUS_RUNTIME_DIR": "/r"})
    durable = (paths.data_lock, paths.database, paths.snapshot_directory, paths.log_directory)
    assert all(path.startswith("/d/") for path in durable)
    assert paths.log("writer") == "/d/logs/writer.log"


def test_nothing_is_touched_by_locating(base, paths):
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("length", range(60, 140))
def test_sockets_always_have_paths_that_fit(length):
    runtime = "/" + "x" * (length - 1)
    paths = locate(Settings(data_directory="/d"), {"AGENTBUS_RUNTIME_DIR": runtime})
    redis = os.path.join(paths.redis_directory, "redis-01234567.sock")
    assert len(os.fsencode(paths.socket)) <= SOCKET_PATH_LIMIT
    assert len(os.fsencode(redis)) <= SOCKET_PATH_LIMIT
    assert paths.lock == f"{runtime}/daemon.lock"


def test_bytes_count_not_characters():
    runtime = "/" + "ä" * 60
    paths = locate(Settings(data_directory="/d"), {"AGENTBUS_RUNTIME_DIR": runtime})
    assert paths.socket.startswith(f"/tmp/agentbus-{os.getuid()}/")


def test_long_directories_do_not_share_a_socket():
    sockets = {
        locate(
            Settings(data_directory="/d"), {"AGENTBUS_RUNTIME_DIR": f"/{'x' * 120}/{name}"}
        ).socket
        for name in "abc"
    }
    assert len(sockets) == 3


def test_directories_are_made_for_the_user_alone(paths):
    prepare(paths)
    for directory in (
        paths.runtime_directory,
        paths.redis_directory,
        paths.data_directory,
        paths.snapshot_directory,
        paths.log_directory,
    ):
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700


def test_preparing_twice_is_the_same(paths):
    prepare(paths)
    prepare(paths)


def test_the_directory_of_a_relocated_socket_is_made_and_checked_too(base, monkeypatch):
    monkeypatch.setattr(module, "_SHARED", str(base))
    runtime = base / ("x" * 100)
    paths = locate(Settings(data_directory=str(base / "d")), {"AGENTBUS_RUNTIME_DIR": str(runtime)})
    prepare(paths)
    parent = Path(paths.socket).parent
    assert parent == base / f"agentbus-{os.getuid()}"
    assert stat.S_IMODE(parent.stat().st_mode) == 0o700
    parent.chmod(0o777)
    with pytest.raises(UnsafePermissions, match=str(parent)):
        prepare(paths)


def test_a_symbolic_link_is_refused(base, paths):
    (base / "real").mkdir(mode=0o700)
    (base / "run").symlink_to(base / "real")
    with pytest.raises(UnsafePermissions, match="symbolic link"):
        prepare(paths)


def test_a_dangling_link_is_refused(base, paths):
    (base / "run").symlink_to(base / "nowhere")
    with pytest.raises(UnsafePermissions, match="symbolic link"):
        prepare(paths)
    assert not (base / "nowhere").exists()


def test_a_file_in_its_place_is_refused(base, paths):
    (base / "run").write_text("")
    with pytest.raises(UnsafePermissions, match="not a directory"):
        prepare(paths)


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_a_directory_open_to_others_is_refused_with_the_cure(base, paths, mode):
    (base / "run").mkdir()
    (base / "run").chmod(mode)
    with pytest.raises(UnsafePermissions, match=f"chmod 700 {base}/run"):
        prepare(paths)


def test_a_directory_of_somebody_else_is_refused(paths, monkeypatch):
    prepare(paths)
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    with pytest.raises(UnsafePermissions, match=f"belongs to user id {me}"):
        prepare(paths)


def test_a_place_that_cannot_be_made_is_an_error_of_ours(base):
    (base / "file").write_text("")
    settings = Settings(data_directory=str(base / "file" / "data"))
    with pytest.raises(UnsafePermissions, match="cannot be made"):
        prepare(locate(settings, {"AGENTBUS_RUNTIME_DIR": str(base / "run")}))


def test_paths_are_plain_values():
    paths = locate(Settings(data_directory="/d"), {"AGENTBUS_RUNTIME_DIR": "/r"})
    assert all(isinstance(value, str) for value in msgspec.structs.astuple(paths))


def test_what_can_be_made_is_usable_and_looking_makes_nothing(base, paths):
    check_usable(paths.log_directory)
    assert list(base.iterdir()) == []
    prepare(paths)
    check_usable(paths.log_directory)


@pytest.mark.parametrize("how", ["file", "link", "open"])
def test_what_prepare_refuses_is_not_usable(base, paths, how):
    data = base / "data"
    if how == "file":
        data.touch()
    elif how == "link":
        data.symlink_to(base)
    else:
        data.mkdir()
        data.chmod(0o755)
    with pytest.raises(UnsafePermissions) as looked:
        check_usable(str(data))
    with pytest.raises(UnsafePermissions) as made:
        prepare(paths)
    assert str(looked.value) == str(made.value)


def test_a_path_through_a_file_is_not_usable_and_told_as_when_it_is_made(base, paths):
    (base / "data").touch()
    with pytest.raises(UnsafePermissions, match="no directory"):
        check_usable(paths.log_directory)
