"""The reference pages say what the code says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from reference import pages
from reference.failures import ADVICE

from agentbus.cli import snapshot
from agentbus.config import Settings
from agentbus.errors import BY_CODE
from agentbus.wire.rpc import METHODS, NOTIFICATIONS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text()


def test_generated_pages_are_what_the_generator_writes_now():
    for name, text in pages().items():
        assert page(name) == text, f"in contrib/, python -m reference writes {name} anew"


def test_every_setting_is_documented():
    assert [
        name for name in Settings.__struct_fields__ if f"`{name}`" not in page("configuration.md")
    ] == []


def test_every_error_code_is_documented_with_advice():
    assert set(ADVICE) == set(BY_CODE)
    assert [code for code in BY_CODE if f"| `{code}` |" not in page("errors.md")] == []


def test_every_method_and_notification_is_documented():
    for name in [*METHODS, *NOTIFICATIONS]:
        assert f"### `{name}`" in page("protocol.md")


@pytest.mark.parametrize(
    "shape",
    [
        snapshot.Snapshot,
        snapshot.Process,
        snapshot.Redis,
        snapshot.Sqlite,
        snapshot.Session,
        snapshot.Subscription,
        snapshot.Channel,
        snapshot.Budget,
    ],
    ids=lambda shape: shape.__name__,
)
def test_every_member_that_the_dashboard_reads_is_documented(shape):
    named = set(re.findall(r"`(?:\w+\.)?(\w+)`", page("status.md")))
    assert [name for name in shape.__struct_fields__ if name not in named] == []


def test_every_dependency_has_its_reason():
    manifest = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = manifest["project"], manifest["dependency-groups"]
    requirements = [
        *project["dependencies"],
        *project["optional-dependencies"]["server"],
        *(item for group in groups.values() for item in group if isinstance(item, str)),
    ]
    wanted = {re.split(r"[\[<>=; ]", requirement)[0] for requirement in requirements}
    text = (ROOT / "docs/decisions/dependencies.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert documented == wanted


def test_the_schema_of_the_settings_says_what_the_struct_says():
    assert set(msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]) == set(
        Settings.__struct_fields__
    )
