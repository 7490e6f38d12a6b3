"""Whether Codex runs a hook is read from its settings as the program itself reads it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from agentbus.harness.programs import HARNESSES, Machine, Start
from agentbus.harness.state import look
from tests.harness.conftest import installed
from tests.harness.programs import Codex

START = Start(["/opt/bin/agentbus"])
[OURS] = [each for each in HARNESSES if each.name == "codex"]


def hook(home: Path) -> dict[str, Any]:
    """What Codex says of its only hook."""
    asked = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": CLIENT}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(home)]}},
    ]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "http_proxy": "http://127.0.0.1:9"}
    environment["https_proxy"] = environment["http_proxy"]
    with subprocess.Popen(
        [installed(Codex), "app-server"],
        env=environment,
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps(each) + "\n" for each in asked))
        server.stdin.flush()
        answers = (json.loads(line) for line in server.stdout)
        answer = next(each for each in answers if each.get("id") == 2)
        server.stdin.close()
        server.kill()
    [place] = answer["result"]["data"]
    [found] = place["hooks"]
    return dict(found)


CLIENT = {"name": "tests", "title": "tests", "version": "1"}


def test_a_hook_is_run_where_we_say_so_and_passed_over_where_we_say_so(home: Path) -> None:
    machine = Machine(str(home))
    for target in OURS.targets(machine, START):
        Path(target.path).parent.mkdir(exist_ok=True)
        texts = [change.apply(None) for change in target.changes]
        Path(target.path).write_text(texts[0] or "")
    settings, hooks = (Path(target.path) for target in OURS.targets(machine, START))
    told = hook(home)
    assert told["trustStatus"] == "untrusted"
    assert look(OURS, machine, START).passed_over == [str(hooks)]

    state = f'[hooks.state."{told["key"]}"]\ntrusted_hash = "{told["currentHash"]}"\n'
    settings.write_text(f"{settings.read_text()}\n{state}")
    told = hook(home)
    assert (told["trustStatus"], told["enabled"]) == ("trusted", True)
    assert look(OURS, machine, START).passed_over == []

    settings.write_text(f"{settings.read_text()}enabled = false\n")
    assert not hook(home)["enabled"]
    assert look(OURS, machine, START).passed_over == [str(hooks)]
