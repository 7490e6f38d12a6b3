from __future__ import annotations

import json

import msgspec
import pytest

from agentbus.cli.app import main
from agentbus.config import Settings


@pytest.fixture
def file(tmp_path):
    """A configuration file with one setting."""
    path = tmp_path / "config.json"
    path.write_text('{"prefetch_mib": 8}')
    return path


def test_show_tells_value_and_origin_of_every_setting(file, capsys):
    assert main(["config", "show", "--config", str(file)]) == 0
    text = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert rows["prefetch_mib"] == ["prefetch_mib", "8", "file"]
    assert rows["prefetch_messages"] == ["prefetch_messages", "256", "default"]
    assert set(Settings.__struct_fields__) <= set(rows)
    assert str(file).replace("\n", "") in text.replace("\n", "")


def test_show_says_that_the_defaults_hold_where_there_is_no_file(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["config", "show"]) == 0
    assert "absent: defaults hold" in capsys.readouterr().out.replace("\n", " ")


def test_show_json_is_one_document(file, capsys):
    assert main(["config", "show", "--json", "--config", str(file)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["path"] == str(file)
    assert document["settings"]["prefetch_mib"] == {"value": 8, "from": "file"}
    assert document["settings"]["log_level"] == {"value": "info", "from": "default"}


def test_schema_describes_a_file_of_all_defaults(capsys):
    jsonschema = pytest.importorskip("jsonschema")
    assert main(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(msgspec.json.encode(Settings())), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"prefetch_mb": 4}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"prefetch_mib": 0}, schema)
