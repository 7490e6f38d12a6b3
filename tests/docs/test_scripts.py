"""The scripts under contrib/ and the tools' settings agree with each other and with the README."""

from __future__ import annotations

import configparser
import tomllib
from pathlib import Path

import checks
import environment
import pytest

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty checkout; installing only records for which groups."""
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    installed: list[list[str]] = []

    def install(_manifest, groups):
        installed.append(groups)
        return 0

    def make(*, fresh):
        python = environment.PYTHON
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()

    target = tmp_path / ".venv"
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "TARGET", target)
    monkeypatch.setattr(environment, "PYTHON", target / "bin" / "python")
    monkeypatch.setattr(environment, "STAMP", target / "stamp.json")
    monkeypatch.setattr(environment, "_install", install)
    monkeypatch.setattr(environment, "_make", make)
    return installed


def test_a_second_set_up_does_nothing(checkout):
    assert environment.main("use") == environment.main("use") == 0
    assert checkout == [[]]


def test_what_the_tests_need_is_added_and_is_enough_for_use(checkout):
    for purpose in ("use", "test", "use", "test"):
        assert environment.main(purpose) == 0
    assert checkout == [[], ["lint", "test"]]


def test_a_changed_manifest_is_installed_again(checkout):
    environment.main("test")
    manifest = environment.ROOT / "pyproject.toml"
    manifest.write_text(manifest.read_text() + "\n# changed\n")
    environment.main("use")
    assert checkout == [["lint", "test"], []]


def test_groups_include_each_other():
    everything = environment._group(MANIFEST, "dev")
    assert set(environment._group(MANIFEST, "test")) < set(everything)
    assert set(environment._group(MANIFEST, "lint")) < set(everything)
    assert all(isinstance(requirement, str) for requirement in everything)


def test_every_suite_has_a_tox_environment_and_every_folder_is_in_a_suite():
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    listed = {name.strip() for name in tox["tox"]["env_list"].split(",")}
    assert {suite for suite in checks.SUITES if suite != "unit"} < listed
    assert {"lint", "layers", "types", "py311-unit"} <= listed
    tops = {path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/**/test_*.py")}
    assert tops - {"harness", "packaging"} <= set(checks.SUITES)


def test_every_dependency_is_bounded_on_both_sides():
    groups = MANIFEST["dependency-groups"].values()
    requirements = [
        *MANIFEST["build-system"]["requires"],
        *MANIFEST["project"]["dependencies"],
        *MANIFEST["project"]["optional-dependencies"]["server"],
        *(each for group in groups for each in group if isinstance(each, str)),
    ]
    unbound = [each for each in requirements if not (">=" in each and ",<" in each)]
    assert unbound == []


def test_the_checks_and_tox_look_at_the_same_sources():
    tox = (ROOT / "tox.ini").read_text()
    assert f"ruff check {' '.join(checks.SOURCES)}\n" in tox
    assert f"ruff format --check {' '.join(checks.SOURCES)}\n" in tox
