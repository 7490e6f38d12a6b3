"""The distributions: built from the sources, installed with nothing else, used.

Needs the package index, so it runs where it is asked for: `tox -e packaging`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from agentbus import __version__
from tests.support.daemon import Daemon
from tests.support.stdio import REVISION

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
MANUAL = "docs/reference/agentbus.1"

pytestmark = [
    pytest.mark.skipif("AGENTBUS_PACKAGING" not in os.environ, reason="tox -e packaging runs it"),
    pytest.mark.timeout(3 * SECONDS),
]


def run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_at(path: Path, *requirements: str) -> Path:
    """A fresh one with these; its directory of programs."""
    venv.create(path, with_pip=True, symlinks=True)
    pip = [path / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, *requirements, cwd=path)
    return path / "bin"


def build(python: Path, source: Path, *kinds: str) -> None:
    targets = [word for kind in kinds for word in ("-t", kind)]
    run(python, "-m", "hatchling", "build", *targets, "-d", source.parent / "dist", cwd=source)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="module")
def builder(place: Path) -> Path:
    """A Python that can build."""
    return environment_at(place / "builder", "hatchling") / "python"


@pytest.fixture(scope="module")
def dist(place: Path, builder: Path) -> Path:
    """Both distributions, of a copy of what belongs in them."""
    source = place / "source"
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "agentbus", source / "agentbus", ignore=ignored)
    (source / "docs/reference").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", MANUAL):
        shutil.copy(ROOT / name, source / name)
    build(builder, source, "sdist", "wheel")
    return place / "dist"


@pytest.fixture(scope="module")
def installed(place: Path, dist: Path) -> Path:
    """The programs of an environment with nothing but the wheel and what it asks for."""
    [wheel] = dist.glob("*.whl")
    return environment_at(place / "installed", f"{wheel}[server]")


def modules(names: list[str]) -> set[str]:
    return {name for name in names if name.startswith("agentbus/")}


def test_the_wheel_has_every_file_of_the_package(dist: Path) -> None:
    [wheel] = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    sources = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "agentbus").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert modules(names) == sources
    assert {name.partition("/")[0] for name in names} == {
        "agentbus",
        f"agentbus_local-{__version__}.data",
        f"agentbus_local-{__version__}.dist-info",
    }


def test_the_sdist_builds_the_same_wheel(place: Path, dist: Path, builder: Path) -> None:
    [sdist] = dist.glob("*.tar.gz")
    unpacked = place / "unpacked"
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    [source] = unpacked.iterdir()
    build(builder, source, "wheel")
    [first], [second] = dist.glob("*.whl"), (unpacked / "dist").glob("*.whl")
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        assert [(each.filename, each.CRC) for each in one.infolist()] == [
            (each.filename, each.CRC) for each in other.infolist()
        ]


def test_what_is_installed_is_complete_and_of_this_version(installed: Path, place: Path) -> None:
    assert run(installed / "agentbus", "--version", cwd=place) == f"agentbus {__version__}\n"
    run(installed / "python", "-m", "pip", "check", cwd=place)
    found = run(installed / "python", "-c", "import agentbus; print(agentbus.__file__)", cwd=place)
    assert found.startswith(str(place))
    manual = installed.parent / "share/man/man1/agentbus.1"
    assert manual.read_text() == (ROOT / MANUAL).read_text()


def test_the_demo_of_what_is_installed_loses_nothing(installed: Path, place: Path) -> None:
    environment = {"HOME": str(place), "PATH": "/usr/bin:/bin"}
    told = run(installed / "agentbus", "demo", "--fast", cwd=place, environment=environment)
    assert "nothing was lost" in told.lower()


def test_a_call_of_what_is_installed_is_answered_on_an_empty_home(
    installed: Path, place: Path
) -> None:
    home = place / "home"
    home.mkdir()
    with Daemon() as bus:
        environment = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "AGENTBUS_RUNTIME_DIR": bus.environment["AGENTBUS_RUNTIME_DIR"],
            "AGENTBUS_CONFIG": bus.config_path,
        }
        (home / ".codex").mkdir()
        run(installed / "agentbus", "init", "--global", cwd=home, environment=environment)
        assert str(installed / "agentbus") in (home / ".codex/config.toml").read_text()
        asked = [
            ("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": CLIENT}),
            ("tools/call", {"name": "send", "arguments": {"channel": "general", "content": "hi"}}),
        ]
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(asked)
        ]
        adapter = subprocess.Popen(
            [installed / "agentbus", "mcp"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with adapter:
            assert adapter.stdin is not None
            assert adapter.stdout is not None
            adapter.stdin.write("\n".join(lines) + "\n")
            adapter.stdin.flush()
            answers = {}
            while 1 not in answers:
                answer = json.loads(adapter.stdout.readline())
                answers[answer.get("id")] = answer
            adapter.stdin.close()
        assert answers[1]["result"]["structuredContent"]["seq"] == 1
        run(installed / "agentbus", "doctor", cwd=home, environment=environment)
        run(installed / "agentbus", "stop", cwd=home, environment=environment)


CLIENT = {"name": "tests", "version": sys.version.split()[0]}
