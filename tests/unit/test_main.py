from __future__ import annotations

import sys
from types import ModuleType

import pytest

from agentbus import __main__, __version__


@pytest.fixture
def pretend(monkeypatch):
    """Puts a module with one function in the place of another, and records its calls."""

    def put(module: str, function: str, result: int) -> list[object]:
        calls: list[object] = []

        def pretended(arguments):
            calls.append(arguments)
            return result

        double = ModuleType(module)
        setattr(double, function, pretended)
        monkeypatch.setitem(sys.modules, module, double)
        return calls

    return put


def run(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["agentbus", *arguments])
    return __main__.main()


def test_the_adapter_is_reached_without_the_command_line_library(monkeypatch, pretend):
    calls = pretend("agentbus.adapter.main", "main", 3)
    monkeypatch.setitem(sys.modules, "agentbus.cli.app", None)
    assert run(monkeypatch, "mcp", "--agent", "Sam") == 3
    assert calls == [["--agent", "Sam"]]


@pytest.mark.parametrize(
    "arguments",
    [["mcp", "--help"], ["status"], [], ["daemon"], ["daemon", "--foreground", "--help"]],
)
def test_everything_else_goes_through_it(monkeypatch, pretend, arguments):
    calls = pretend("agentbus.cli.app", "main", 4)
    assert run(monkeypatch, *arguments) == 4
    assert calls == [arguments]


def test_the_version_costs_no_library(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "agentbus.cli.app", None)
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"agentbus {__version__}\n"


@pytest.mark.parametrize("command", ["mcp", "hook", "status"])
def test_an_interrupt_while_libraries_are_loaded_is_no_traceback(monkeypatch, command):
    class Interrupted(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    for module in ("agentbus.adapter.main", "agentbus.harness.hook", "agentbus.cli.app"):
        monkeypatch.setitem(sys.modules, module, Interrupted(module))
    assert run(monkeypatch, command) == 130
