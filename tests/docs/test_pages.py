"""Links lead somewhere, and commands that the pages name exist."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from agentbus.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("bench/**/*.md"),
        *ROOT.glob("contrib/**/*.md"),
    ],
    key=str,
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"""(?:^|[\s/"(])(agentbus (?:--version|[a-z]+\b).*)""")
PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in FENCE.findall(page.read_text()) if language in languages]


def anchors(page: Path) -> set[str]:
    """As the usual renderers make them of headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@PAGE
def test_links_within_the_repository_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


@PAGE
def test_every_page_begins_with_its_title(page):
    lines = [line for line in page.read_text().splitlines() if not line.startswith("<!--")]
    assert next(line for line in lines if line).startswith("# ")


@PAGE
def test_files_that_are_named_as_the_repositorys_own_exist(page):
    named = re.findall(r"`((?:agentbus|contrib|tests|bench|docs)/[\w./-]+)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


@PAGE
def test_agentbus_commands_in_the_text_exist_with_the_options_shown(page):
    shell = [line for block in blocks(page, "sh") for line in block.splitlines()]
    inline = re.findall(r"`(agentbus [^`]+)`", prose(page))
    for line in [*shell, *inline]:
        for command in COMMAND.findall(line):
            check_command(command.split("#")[0])


def check_command(line: str) -> None:
    words = [word for word in shlex.split(line) if word not in {"|", "...", "…"}][1:]
    command = get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        assert words[0] in command.commands, f"there is no command {line!r}"
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert [word for word in words if word.startswith("--") and word not in known] == [], line


@PAGE
def test_json_and_toml_that_can_be_copied_is_well_formed(page):
    for block in blocks(page, "json"):
        for document in block.strip().splitlines() if block.count("\n{") else [block]:
            json.loads(document)
    for block in blocks(page, "toml"):
        tomllib.loads(block)


@PAGE
def test_python_that_can_be_copied_compiles(page):
    for block in blocks(page, "python"):
        compile(block, str(page), "exec")


def test_the_index_leads_to_every_page():
    reachable, frontier = set(), [ROOT / "README.md", ROOT / "docs/README.md"]
    while frontier:
        page = frontier.pop()
        if page in reachable:
            continue
        reachable.add(page)
        links = (link.partition("#")[0] for link in LINK.findall(prose(page)))
        targets = ((page.parent / link).resolve() for link in links if link.endswith(".md"))
        frontier += [target for target in targets if target.exists()]
    assert [page for page in PAGES if page not in reachable and "bench" not in page.parts] == []


@pytest.mark.parametrize("name", ["contrib/quickstart", "contrib/test", ".ci/run"])
def test_the_scripts_of_the_readme_can_be_run(name):
    assert (ROOT / name).stat().st_mode & 0o111
    assert (ROOT / name).read_text().startswith("#!/")
