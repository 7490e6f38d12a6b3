from __future__ import annotations

import pytest

from agentbus.harness.json_edit import NotEditable
from agentbus.harness.toml_edit import NotToml, drop_table, load, put_table

PATH = ("mcp_servers", "agentbus")
TABLE = {"command": "/usr/bin/agentbus", "args": ["mcp"], "env": {"A": 'b "c" \\'}}

TEXTS = [
    "",
    'model = "x" # the best\n',
    'model = "x"\n\n[a]\n# why\nb = 1\n\n# the end\n',
    '[mcp_servers.other]\ncommand = "y"\n\n[mcp_servers.other.env]\nA = "b"\n',
    "[mcp_servers]\n\n[z]\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_put_in_and_taken_out_leaves_the_rest(text):
    made = put_table(text, PATH, TABLE)
    assert load(made)["mcp_servers"]["agentbus"] == TABLE
    assert made.startswith(text)
    assert drop_table(made, PATH) == text


def test_a_last_line_without_an_end_gets_one():
    made = put_table("a = 1 # x", PATH, {"command": "y"})
    assert made == 'a = 1 # x\n\n[mcp_servers.agentbus]\ncommand = "y"\n'


@pytest.mark.parametrize(
    "head",
    [
        "[mcp_servers.agentbus]",
        '[ mcp_servers . "agentbus" ] # ours',
        "[mcp_servers.'agentbus']",
    ],
)
def test_a_table_is_known_however_it_is_written(head):
    text = f'a = 1\n\n{head}\ncommand = "x"\n\n[mcp_servers.agentbus.env]\nA = "b"\n\n# of z\n[z]\n'
    assert drop_table(text, PATH) == "a = 1\n\n# of z\n[z]\n"


def test_a_table_that_is_as_wanted_is_left():
    text = put_table("a = 1\n", PATH, TABLE)
    assert put_table(text, PATH, TABLE) == text


def test_another_table_takes_its_place():
    text = put_table("a = 1\n", PATH, {"command": "old"}) + "\n[z]\n"
    made = put_table(text, PATH, TABLE)
    assert load(made) == {"a": 1, "z": {}, "mcp_servers": {"agentbus": TABLE}}


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.agentbus.command = "x"\n',
        '[mcp_servers]\nagentbus = {command = "x"}\n',
        'mcp_servers = {agentbus = {command = "x"}}\n',
    ],
)
def test_what_is_not_a_table_of_its_own_is_refused(text):
    with pytest.raises(NotEditable):
        drop_table(text, PATH)
    with pytest.raises(NotEditable):
        put_table(text, PATH, TABLE)


def test_an_inline_table_that_cannot_be_extended_is_refused():
    with pytest.raises(NotEditable):
        put_table('mcp_servers = {x = {command = "y"}}\n', PATH, TABLE)


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers.agentbus]\ncommand = "x"\nargs = [\n[\n"a"]\n]\n',
        'a = """\n[mcp_servers.agentbus]\n"""\n[mcp_servers.agentbus]\ncommand = "x"\n',
    ],
)
def test_a_line_that_only_looks_like_a_table_is_refused_rather_than_cut(text):
    with pytest.raises(NotEditable):
        drop_table(text, PATH)


def test_what_is_no_toml_is_refused():
    with pytest.raises(NotToml, match="line 1"):
        put_table("a = = 1", PATH, TABLE)
