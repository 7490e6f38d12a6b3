from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus import config
from agentbus.config import Settings, load
from agentbus.errors import ConfigInvalid

FIELDS = [field.name for field in msgspec.structs.fields(Settings)]
PROPERTIES = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]
BOUNDED = [name for name, schema in PROPERTIES.items() if "minimum" in schema]
CHOICES = [name for name, schema in PROPERTIES.items() if "enum" in schema]


@pytest.fixture
def write(tmp_path):
    """Writes a configuration file and returns its path."""

    def write_document(document: object) -> Path:
        path = tmp_path / "config.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return write_document


def refusal(path: Path | None) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        load(path)
    return str(caught.value)


# ---- which file


def test_without_a_file_the_defaults_hold(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    loaded = load()
    assert loaded.path == str(tmp_path / ".config/agentbus/config.json")
    assert not loaded.exists
    assert loaded.given == ()
    assert loaded.settings.data_directory == str(tmp_path / ".local/share/agentbus")


def test_the_default_file_is_read_where_it_exists(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".config/agentbus"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"prefetch_mib": 8}')
    loaded = load()
    assert loaded.exists
    assert loaded.given == ("prefetch_mib",)
    assert loaded.settings.prefetch_mib == 8


def test_the_variable_names_a_file_and_the_argument_wins_over_it(monkeypatch, tmp_path):
    by_variable, by_argument = tmp_path / "a.json", tmp_path / "b.json"
    by_variable.write_text('{"prefetch_mib": 2}')
    by_argument.write_text('{"prefetch_mib": 3}')
    monkeypatch.setenv(config.CONFIG_VARIABLE, str(by_variable))
    assert load().settings.prefetch_mib == 2
    assert load(by_argument).settings.prefetch_mib == 3


def test_a_file_that_was_named_must_exist(tmp_path):
    message = refusal(tmp_path / "none.json")
    assert "none.json: no such file" in message
    assert "--config" in message


def test_a_file_that_the_variable_names_must_exist_and_the_variable_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv(config.CONFIG_VARIABLE, str(tmp_path / "none.json"))
    message = refusal(None)
    assert "none.json: no such file" in message
    assert config.CONFIG_VARIABLE in message
    assert "--config" not in message


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(tmp_path):
    assert "cannot be read" in refusal(tmp_path)


# ---- what it may say


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_file_is_told_to_be_empty(write, text):
    assert "is empty" in refusal(write(text))


@pytest.mark.parametrize("depth", [*range(900, 1000, 7), 100_000])
def test_what_is_nested_too_deeply_is_refused(write, depth):
    refusal(write('{"log_level": ' + "[" * depth + "]" * depth + "}"))


@pytest.mark.parametrize("text", ["{", "[1", '{"log_level": "info"} x', "\x00"])
def test_what_is_not_json_is_refused(write, text):
    assert "is not JSON" in refusal(write(text))


@pytest.mark.parametrize("document", [[], "text", 1, None])
def test_what_is_not_one_object_is_refused(write, document):
    assert "must hold one JSON object" in refusal(write(document if document != "text" else '"x"'))


def test_an_unknown_key_is_refused_with_the_known_ones(write):
    message = refusal(write({"redis_port": 6379}))
    assert "redis_port is not a setting" in message
    assert all(name in message for name in FIELDS)


def test_a_near_miss_is_named(write):
    assert "did you mean prefetch_mib?" in refusal(write({"prefetch_mb": 4}))


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_belong_to_the_allowed_values(write, name):
    schema = PROPERTIES[name]
    for bound in ("minimum", "maximum"):
        document = {name: schema[bound]}
        if name == "recv_max_count":
            document["recv_default_count"] = 1
        assert getattr(load(write(document)).settings, name) == schema[bound]


@pytest.mark.parametrize("name", BOUNDED)
def test_what_lies_beyond_a_bound_is_refused_and_not_clamped(write, name):
    schema = PROPERTIES[name]
    step = 1 if schema["type"] == "integer" else 0.01
    for value in (schema["minimum"] - step, schema["maximum"] + step):
        message = refusal(write({name: value}))
        assert f"{name} is {value}" in message
        assert f"from {schema['minimum']} to {schema['maximum']}" in message


@pytest.mark.parametrize("name", CHOICES)
def test_a_word_that_is_no_choice_is_refused_with_the_choices(write, name):
    message = refusal(write({name: "sometimes"}))
    assert f'{name} is "sometimes"' in message
    assert all(f'"{choice}"' in message for choice in PROPERTIES[name]["enum"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("redis_budget_mib", "512"),
        ("redis_budget_mib", 512.5),
        ("redis_budget_mib", True),
        ("redis_budget_mib", None),
        ("discovery_enabled", 1),
        ("discovery_enabled", "true"),
        ("data_directory", ""),
        ("data_directory", 7),
        ("redis_executable", ""),
        ("inspection_command", "allow-all"),
        ("inspection_command", [1]),
        ("inspection_command", ["a"] * 65),
        ("inspection_timeout_seconds", "5"),
    ],
)
def test_a_wrong_type_or_length_is_refused(write, name, value):
    message = refusal(write({name: value}))
    assert name in message
    assert config.allowed(name) in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data_directory", "a\0b"),
        ("redis_executable", "redis\0"),
        ("inspection_command", ["hook", "\0"]),
    ],
)
def test_a_nul_where_the_system_takes_none_is_refused(write, name, value):
    assert f"{name} contains a NUL" in refusal(write({name: value}))


@given(st.sampled_from(FIELDS), st.none() | st.integers() | st.floats() | st.text(max_size=5))
def test_whatever_a_key_is_given_either_fits_or_is_refused_as_ours(name, value):
    try:
        config.check("file", name, value)
    except ConfigInvalid as error:
        assert name in str(error)  # noqa: PT017 - hypothesis goes through both branches


# ---- combinations


def test_a_default_count_above_the_maximum_is_refused(write):
    message = refusal(write({"recv_default_count": 200, "recv_max_count": 100}))
    assert "recv_default_count is 200" in message
    assert "recv_max_count, which is 100" in message


def test_a_hook_command_of_more_than_32_kib_is_refused(write):
    assert "32768" in refusal(write({"inspection_command": ["x" * 20000, "é" * 8000]}))


def test_the_smallest_window_holds_the_largest_envelope():
    smallest = PROPERTIES["prefetch_mib"]["minimum"] * config.MIB
    assert smallest >= PROPERTIES["max_message_kib"]["maximum"] * config.KIB


# ---- paths


def test_home_and_relative_paths_become_absolute(write, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/somebody")
    settings = load(write({"data_directory": "~/bus", "redis_executable": "bin/valkey"})).settings
    assert settings.data_directory == "/home/somebody/bus"
    assert settings.redis_executable == str(tmp_path / "bin/valkey")


def test_a_relative_data_directory_is_relative_to_the_file(write, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert load(write({"data_directory": "data"})).settings.data_directory == str(tmp_path / "data")


def test_a_bare_name_of_a_server_is_left_to_the_path_search(write):
    assert load(write({"redis_executable": "valkey-server"})).settings.redis_executable == (
        "valkey-server"
    )


def test_a_path_in_a_home_that_nobody_has_is_refused(write):
    assert "set HOME" in refusal(write({"data_directory": "~nobody-of-that-name/bus"}))


@pytest.mark.parametrize("path", ["bin/hook", "~/hook"])
def test_a_hook_program_with_a_slash_is_a_path_of_the_file(write, tmp_path, monkeypatch, path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    command = load(write({"inspection_command": [path, "~/x"]})).settings.inspection_command
    where = tmp_path / "bin/hook" if path == "bin/hook" else tmp_path / "home/hook"
    assert command == (str(where), "~/x")


# ---- comparing


def test_equal_settings_have_equal_fingerprints_whatever_the_order(write, tmp_path):
    first = load(write({"prefetch_mib": 8, "log_level": "debug"})).settings.fingerprint()
    second = load(write({"log_level": "debug", "prefetch_mib": 8})).settings.fingerprint()
    assert first == second
    assert first != load(write({"log_level": "debug"})).settings.fingerprint()


def test_writing_a_default_down_changes_no_fingerprint(write):
    assert (
        load(write({"inspection_timeout_seconds": 5})).settings.fingerprint()
        == load(write({})).settings.fingerprint()
    )


def test_every_setting_has_a_description_and_a_default():
    for name in FIELDS:
        assert PROPERTIES[name]["description"]
        assert "default" in PROPERTIES[name]


def test_a_value_that_may_hold_a_password_is_not_repeated(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"inspection_command": "run --token s3cret"}')
    with pytest.raises(ConfigInvalid, match="inspection_command is not shown here") as refusal:
        load(file)
    assert "s3cret" not in str(refusal.value)
