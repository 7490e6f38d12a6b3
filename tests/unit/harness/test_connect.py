"""Whole homes, as harnesses and their users leave them, before and after."""

from __future__ import annotations

import errno
import json
import os
import tomllib
from pathlib import Path

import pytest

from agentbus.errors import ConfigInvalid
from agentbus.harness import connect, install
from agentbus.harness.connect import Outcome
from agentbus.harness.json_edit import MISSING, find
from agentbus.harness.programs import HARNESSES, Harness, Machine, Start
from agentbus.harness.record import Record, locked

START = Start(["/opt/bin/agentbus"])
OTHER = Start(["/home/new place/agentbus"], ["--config", "/c"], {"AGENTBUS_RUNTIME_DIR": "/r"})

CLAUDE = (
    '{\n  "numStartups": 3,\n  "mcpServers": {\n    "x": {\n      "command": "y"\n    }\n  }\n}'
)
SETTINGS = """\
{
  // mine
  "permissions": {"allow": ["Bash(ls)"]},
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}, // a bell
    ],
  },
}
"""
CODEX = 'model = "x" # the best\n\n[mcp_servers.x]\ncommand = "y"\n\n# the end\n'
HOOKS = '{"hooks": {"Stop": []}}'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """One in which both programs were used."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".claude.json").write_text(CLAUDE)
    (tmp_path / ".claude/settings.json").write_text(SETTINGS)
    (tmp_path / ".codex/config.toml").write_text(CODEX)
    (tmp_path / ".codex/hooks.json").write_text(HOOKS)
    return tmp_path


OPENCODE = '{\n  // mine\n  "model": "x", // the best\n}\n'


def test_all_four_are_connected_and_disconnected(home: Path) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text('{"ui": {"theme": "x"}}\n')
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".config/opencode/opencode.jsonc").write_text(OPENCODE)
    before = files(home)
    assert len(well(run(home))) == 7
    gemini = json.loads((home / ".gemini/settings.json").read_text())
    assert gemini["mcpServers"]["agentbus"] == {"command": "/opt/bin/agentbus", "args": ["mcp"]}
    assert set(gemini["hooks"]) == {"SessionStart", "AfterAgent"}
    opencode = (home / ".config/opencode/opencode.jsonc").read_text()
    assert '"command": [\n        "/opt/bin/agentbus",' in opencode
    assert "// the best" in opencode
    assert "agentbus_caller" in (home / ".config/opencode/plugins/agentbus.js").read_text()
    assert well(run(home)) == []
    well(run(home, remove=True))
    assert files(home) == before
    assert not (home / ".config/opencode/plugins").exists()


def test_a_plugin_of_that_name_that_is_not_ours_is_left(home: Path) -> None:
    plugin = home / ".config/opencode/plugins/agentbus.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("// mine\n")
    assert "not ours" in refused(run(home), "opencode")
    assert plugin.read_text() == "// mine\n"
    assert not (home / ".config/opencode/opencode.json").exists()


def test_a_plugin_that_somebody_made_their_own_stays(home: Path) -> None:
    (home / ".config/opencode").mkdir(parents=True)
    well(run(home))
    plugin = home / ".config/opencode/plugins/agentbus.js"
    plugin.write_text("// of my own now\n")
    well(run(home, remove=True))
    assert plugin.read_text() == "// of my own now\n"


def files(home: Path) -> dict[str, bytes]:
    """Everything of others."""
    below = (
        path for path in home.rglob("*") if path.is_file() and ".config/agentbus" not in str(path)
    )
    return {str(path.relative_to(home)): path.read_bytes() for path in below}


def run(
    home: Path, *, start: Start = START, remove: bool = False, dry: bool = False
) -> list[Outcome]:
    machine = Machine(str(home))
    work = connect.disconnect if remove else connect.connect
    with locked(connect.record_directory(machine)) as record:
        done = [
            work(each.name, each.targets(machine, start), record, dry=dry)
            for each in HARNESSES
            if each.is_found(machine) or remove
        ]
        record.tidy()
    return done


def well(outcomes: list[Outcome]) -> list[str]:
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    return [plan.path for outcome in outcomes for plan in outcome.changed]


def refused(outcomes: list[Outcome], name: str) -> str:
    (error,) = [outcome.error for outcome in outcomes if outcome.name == name]
    assert error is not None
    return error.message


def servers(home: Path) -> tuple[object, object]:
    claude = json.loads((home / ".claude.json").read_bytes().decode("utf-8-sig"))
    codex = tomllib.loads((home / ".codex/config.toml").read_text())
    return (
        find(claude, ("mcpServers", "agentbus", "command")),
        find(codex, ("mcp_servers", "agentbus", "command")),
    )


def test_it_is_put_in_once_and_taken_out_to_the_last_byte(home: Path) -> None:
    before = files(home)
    assert len(well(run(home))) == 4
    connected = files(home)
    assert servers(home) == ("/opt/bin/agentbus", "/opt/bin/agentbus")
    assert well(run(home)) == []
    assert files(home) == connected
    well(run(home, remove=True))
    assert files(home) == before
    assert not (home / ".config/agentbus").exists()
    assert well(run(home, remove=True)) == []


def test_what_was_not_there_is_gone_again(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    well(run(tmp_path))
    assert set(files(tmp_path)) == {".claude.json", ".claude/settings.json"}
    well(run(tmp_path, remove=True))
    assert {path.name for path in tmp_path.iterdir()} == {".claude", ".config"}


def test_directories_that_were_made_are_removed(tmp_path: Path) -> None:
    machine = Machine(str(tmp_path))
    with locked(connect.record_directory(machine)) as record:
        for each in HARNESSES:
            connect.connect(each.name, each.targets(machine, START), record, dry=False)
    assert (tmp_path / ".codex/config.toml").exists()
    well(run(tmp_path, remove=True))
    assert [path.name for path in tmp_path.iterdir()] == [".config"]


def test_a_dry_run_tells_and_changes_nothing(home: Path) -> None:
    before = files(home)
    outcomes = run(home, dry=True)
    assert files(home) == before
    diff = "".join(plan.diff() for outcome in outcomes for plan in outcome.plans)
    assert "+[mcp_servers.agentbus]" in diff
    assert '+    "agentbus": {' in diff
    well(run(home))
    shown = "".join(plan.diff() for o in run(home, remove=True, dry=True) for plan in o.plans)
    assert "-[mcp_servers.agentbus]" in shown


def test_what_was_written_since_stays_when_it_is_taken_out(home: Path) -> None:
    well(run(home))
    claude = home / ".claude.json"
    claude.write_text(json.dumps({**json.loads(claude.read_text()), "numStartups": 4}))
    settings = home / ".claude/settings.json"
    settings.write_text(settings.read_text().replace("// mine", "// mine, still"))
    codex = home / ".codex/config.toml"
    codex.write_text(codex.read_text() + "\n# later\n[late]\na = 1\n")
    outcome, *_ = run(home, remove=True)
    assert json.loads(claude.read_text()) == {**json.loads(CLAUDE), "numStartups": 4}
    assert settings.read_text() == SETTINGS.replace("// mine", "// mine, still")
    assert codex.read_text() == CODEX + "\n# later\n[late]\na = 1\n"
    assert (home / ".codex/hooks.json").read_text() == HOOKS
    kept = [Path(path).read_text() for path in outcome.kept]
    assert kept == [SETTINGS, CLAUDE]


def test_what_a_user_took_out_is_put_in_again_and_their_edits_are_what_was_there(
    home: Path,
) -> None:
    well(run(home))
    edited = CODEX.replace("the best", "another")
    (home / ".codex/config.toml").write_text(edited)
    assert well(run(home)) == [str(home / ".codex/config.toml")]
    well(run(home, remove=True))
    assert (home / ".codex/config.toml").read_text() == edited


def test_another_place_of_the_program_takes_the_place_of_the_first(home: Path) -> None:
    before = files(home)
    well(run(home))
    assert len(well(run(home, start=OTHER))) == 4
    assert servers(home) == ("/home/new place/agentbus", "/home/new place/agentbus")
    hooks = json.loads((home / ".codex/hooks.json").read_text())["hooks"]["Stop"]
    assert [hook["command"] for group in hooks for hook in group["hooks"]] == [
        "env AGENTBUS_RUNTIME_DIR=/r '/home/new place/agentbus' hook codex-stop --config /c"
    ]
    well(run(home, remove=True))
    assert files(home) == before


def test_an_entry_that_a_user_wrote_keeps_what_they_added_and_comes_back(home: Path) -> None:
    mine = '\n[mcp_servers.agentbus]\ncommand = "agentbus"\nargs = ["mcp"]\n'
    mine += "tool_timeout_sec = 600\n"
    (home / ".codex/config.toml").write_text(CODEX + mine)
    state = json.loads(CLAUDE)
    state["mcpServers"]["agentbus"] = {"command": "agentbus", "args": ["mcp"], "env": {"A": "b"}}
    (home / ".claude.json").write_text(json.dumps(state))
    before = files(home)
    well(run(home, start=OTHER))
    table = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["agentbus"]
    assert (table["command"], table["tool_timeout_sec"]) == (OTHER.command[0], 600)
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["agentbus"]
    assert entry["env"] == {"A": "b", "AGENTBUS_RUNTIME_DIR": "/r"}
    (home / ".claude.json").write_text((home / ".claude.json").read_text() + "\n")
    well(run(home, remove=True))
    assert files(home) == {**before, ".claude.json": before[".claude.json"] + b"\n"}


@pytest.mark.parametrize(
    "entry", [{"type": "http", "url": "http://x"}, {"command": "node", "args": ["mcp"]}, 3]
)
def test_a_server_of_that_name_that_is_another_is_left_alone(home: Path, entry: object) -> None:
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"agentbus": entry}}))
    before = files(home)
    outcomes = run(home)
    assert "starts something else" in refused(outcomes, "claude-code")
    claude = {path: content for path, content in files(home).items() if "claude" in path}
    assert claude == {path: content for path, content in before.items() if "claude" in path}
    assert servers(home)[1] == "/opt/bin/agentbus"


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        (".claude.json", b'{"a": 1', "line 1, column 8"),
        (".claude.json", b"\xff\xfe{", "not UTF-8"),
        (".claude.json", b"[]", "not an object"),
        (".claude.json", b'{"mcpServers": 3}', "mcpServers is not an object"),
        (".claude/settings.json", b'{"hooks": {"Stop": {}}}', "not a list"),
        (".codex/config.toml", b"a = = 1", "cannot be read"),
        (".codex/config.toml", b'mcp_servers = {x = {command = "y"}}\n', "by lines"),
    ],
)
def test_what_cannot_be_edited_is_told_and_nothing_of_that_harness_is_touched(
    home: Path, file: str, content: bytes, why: str
) -> None:
    (home / file).write_bytes(content)
    before = files(home)
    name, other = ("codex", "claude") if "codex" in file else ("claude-code", "codex")
    outcomes = run(home)
    message = refused(outcomes, name)
    assert str(home / file) in message
    assert why in message
    now = files(home)
    assert {path: now[path] for path in before if other not in path} == {
        path: before[path] for path in before if other not in path
    }
    assert [outcome.name for outcome in outcomes if outcome.error] == [name]


def test_a_byte_order_mark_and_line_ends_of_windows_stay(home: Path) -> None:
    claude, codex = home / ".claude.json", home / ".codex/config.toml"
    claude.write_bytes(b"\xef\xbb\xbf" + CLAUDE.replace("\n", "\r\n").encode())
    codex.write_bytes(CODEX.replace("\n", "\r\n").encode())
    before = files(home)
    well(run(home))
    assert claude.read_bytes().startswith(b"\xef\xbb\xbf{\r\n")
    for path in (claude, codex):
        assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")
    assert servers(home) == ("/opt/bin/agentbus", "/opt/bin/agentbus")
    codex.write_bytes(codex.read_bytes() + b"# later\r\n")
    well(run(home, remove=True))
    assert files(home) == {**before, ".codex/config.toml": codex.read_bytes()}
    assert codex.read_bytes() == CODEX.replace("\n", "\r\n").encode() + b"\r\n# later\r\n"


def test_a_link_stays_one_and_what_it_leads_to_is_changed(home: Path) -> None:
    kept = home / "dotfiles"
    kept.mkdir()
    (home / ".codex/config.toml").rename(kept / "codex.toml")
    (home / ".codex/config.toml").symlink_to(kept / "codex.toml")
    well(run(home))
    assert (home / ".codex/config.toml").is_symlink()
    assert "agentbus" in (kept / "codex.toml").read_text()
    well(run(home, remove=True))
    assert (home / ".codex/config.toml").is_symlink()
    assert (kept / "codex.toml").read_text() == CODEX


def test_the_mode_of_a_file_stays_and_new_ones_are_the_users_alone(home: Path) -> None:
    (home / ".claude.json").chmod(0o640)
    (home / ".codex/hooks.json").unlink()
    well(run(home))
    assert (home / ".claude.json").stat().st_mode & 0o777 == 0o640
    assert (home / ".codex/hooks.json").stat().st_mode & 0o777 == 0o600
    record = home / ".config/agentbus/init"
    assert record.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o077 for path in record.rglob("*") if path.is_file()} == {0}


def test_a_directory_in_the_place_of_a_file_is_told(home: Path) -> None:
    (home / ".codex/hooks.json").unlink()
    (home / ".codex/hooks.json").mkdir()
    assert "hooks.json" in refused(run(home), "codex")
    assert (home / ".codex/config.toml").read_text() == CODEX


def test_an_empty_file_is_as_good_as_none_and_comes_back_empty(home: Path) -> None:
    (home / ".claude/settings.json").write_bytes(b"")
    well(run(home))
    assert "Stop" in json.loads((home / ".claude/settings.json").read_text())["hooks"]
    well(run(home, remove=True))
    assert (home / ".claude/settings.json").read_bytes() == b""


def test_a_file_that_changes_meanwhile_is_not_written_over(home: Path) -> None:
    machine = Machine(str(home))
    record = Record(connect.record_directory(machine))
    (harness,) = (each for each in HARNESSES if each.name == "codex")
    plans = install.plan(harness.targets(machine, START), record)
    (home / ".codex/config.toml").write_text("# another\n")
    with pytest.raises(ConfigInvalid, match="meanwhile"):
        install.carry_out(plans, "codex", record)
    assert (home / ".codex/config.toml").read_text() == "# another\n"
    assert not list(home.glob(".codex/.*"))
    well(run(home, remove=True))
    assert (home / ".codex/config.toml").read_text() == "# another\n"


def test_a_file_where_a_directory_should_be_is_told(home: Path) -> None:
    for path in (home / ".codex").iterdir():
        path.unlink()
    (home / ".codex").rmdir()
    (home / ".codex").write_text("mine")
    assert "config.toml cannot be read: Not a directory" in refused(run(home), "codex")
    assert (home / ".codex").read_text() == "mine"


def test_a_disk_that_does_not_take_it_leaves_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = files(home)
    well(run(home, dry=True))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        outcomes = run(home)
    assert "No space left on device" in refused(outcomes, "codex")
    assert files(home) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_directory_that_cannot_be_written_is_told(home: Path) -> None:
    (home / ".codex").chmod(0o500)
    try:
        assert "cannot be written" in refused(run(home), "codex")
        assert (home / ".codex/config.toml").read_text() == CODEX
    finally:
        (home / ".codex").chmod(0o700)


def test_a_hook_that_was_moved_among_others_is_taken_out_alone(home: Path) -> None:
    well(run(home))
    path = home / ".claude/settings.json"
    ours = {"type": "command", "command": START.hook("claude-stop"), "timeout": 5}
    theirs = {"type": "command", "command": "say done"}
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [theirs, ours]}]}}))
    well(run(home, remove=True))
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_a_record_that_is_damaged_is_told(home: Path) -> None:
    well(run(home))
    (home / ".config/agentbus/init/record.json").write_text("{")
    with pytest.raises(ConfigInvalid, match=r"record\.json is damaged"):
        run(home)


def test_a_copy_that_is_gone_is_told_and_the_rest_is_put_back(home: Path) -> None:
    well(run(home))
    (copy,) = (home / ".config/agentbus/init/copies").glob("*-config.toml")
    copy.unlink()
    outcomes = run(home, remove=True)
    assert "is gone" in refused(outcomes, "codex")
    assert (home / ".codex/hooks.json").read_text() == HOOKS
    assert (home / ".claude.json").read_text() == CLAUDE


def test_a_harness_that_has_moved_is_found_where_it_was(home: Path) -> None:
    before = files(home)
    well(run(home))
    machine = Machine(str(home), {"CODEX_HOME": str(home / "elsewhere")})
    record = Record(connect.record_directory(machine))
    (harness,) = (each for each in HARNESSES if each.name == "codex")
    well([connect.disconnect("codex", harness.targets(machine, START), record, dry=False)])
    assert (home / ".codex/config.toml").read_bytes() == before[".codex/config.toml"]


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_a_harness_is_found_by_its_program_or_by_what_it_left(
    tmp_path: Path, harness: Harness
) -> None:
    program = tmp_path / "bin" / harness.executable
    program.parent.mkdir()
    machine = Machine(str(tmp_path / "home"), {"PATH": str(program.parent)})
    assert not harness.is_found(machine)
    program.touch(mode=0o755)
    assert harness.is_found(machine)
    used = Machine(str(tmp_path / "home"))
    Path(harness.homes(used)[0]).mkdir(parents=True)
    assert harness.is_found(used)


def test_none_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="none of Claude Code, Codex"):
        connect.choose(Machine(str(tmp_path)), None)
    assert [each.name for each in connect.choose(Machine(str(tmp_path)), "codex")] == ["codex"]


def test_nothing_is_missing_from_a_path_that_is_not_there() -> None:
    assert find({}, ("a",)) is MISSING


def test_variables_that_move_a_program_are_followed(tmp_path: Path) -> None:
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path / "c"), "CODEX_HOME": str(tmp_path / "x")}
    machine = Machine(str(tmp_path), environ)
    paths = {t.path for each in HARNESSES[:2] for t in each.targets(machine, START)}
    names = ("c/.claude.json", "c/settings.json", "x/config.toml", "x/hooks.json")
    assert paths == {str(tmp_path / name) for name in names}


def test_the_program_is_named_by_a_full_path_and_with_what_names_its_bus() -> None:
    environ = {"AGENTBUS_CONFIG": "/c.json", "AGENTBUS_RUNTIME_DIR": "/run/bus", "PATH": ""}
    start = connect.this_program(None, environ)
    assert os.path.isabs(start.command[0])
    assert start.variables == {"AGENTBUS_CONFIG": "/c.json", "AGENTBUS_RUNTIME_DIR": "/run/bus"}
    named = connect.this_program("mine.json", environ)
    assert named.words[-3:] == ["mcp", "--config", os.path.abspath("mine.json")]
    assert named.variables == {"AGENTBUS_RUNTIME_DIR": "/run/bus"}
