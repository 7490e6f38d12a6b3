"""What the help of each command says, and the examples that it and the reference show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

EXAMPLES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "mcp": (
        ("agentbus mcp", "what a harness starts"),
        ("agentbus mcp --application mine --session 1", "by hand, as a session of one's own"),
    ),
    "daemon": (
        ("agentbus daemon", "in the background, as the first adapter does"),
        ("agentbus daemon --foreground", "in this terminal, or under a service manager"),
    ),
    "status": (
        ("agentbus status", "once"),
        ("agentbus status --watch", "as it changes"),
        ("agentbus status --json | jq .state", "for a program"),
    ),
    "doctor": (
        ("agentbus doctor", "when a message does not arrive"),
        ("agentbus doctor --json | jq '.checks[] | select(.result == \"problem\")'", ""),
    ),
    "stop": (("agentbus stop", "after an upgrade, or a change of the settings"),),
    "reset": (("agentbus reset", "asks first"),),
    "init": (
        ("agentbus init --global --dry-run", "what would change in the harnesses' files"),
        ("agentbus init --global", "connect every harness that is found"),
        ("agentbus init --agent Sam --channel general", "in a repository"),
        ("agentbus init --global --remove", "put back what was there"),
    ),
    "wait": (
        ("agentbus wait --timeout 600", "run by an agent: for its own session"),
        ("agentbus wait --application codex --session ID --follow", "for another one"),
    ),
    "hook": (("agentbus hook claude-stop", "what Claude Code runs when an agent stops"),),
    "tail": (
        ("agentbus tail", "all channels"),
        ("agentbus tail general --json | jq .content", "for a program"),
    ),
    "send": (
        ('agentbus send general "the build is green again"', ""),
        ("git log -1 | agentbus send general --type commit", "what stdin says"),
    ),
    "search": (('agentbus search "flaky test" --channel general', ""),),
    "demo": (("agentbus demo --fast", "without pauses"),),
    "config show": (("agentbus config show", "what holds, and where it comes from"),),
    "config schema": (("agentbus config schema > schema.json", "for an editor"),),
}
"""Command lines, and what each is for where that is not plain."""


def epilog(command: str) -> str:
    """What the help of a command ends with; a paragraph for each line."""
    lines = [f"{line}   # {what}" if what else line for line, what in EXAMPLES[command]]
    return "\n\n".join(("Examples:", *lines))


def help_of(command: Callable[..., object]) -> str:
    """Its docstring, each paragraph on one line, so that it is wrapped as the terminal is wide."""
    paragraphs = (command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)
