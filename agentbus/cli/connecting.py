"""What `agentbus init` does, and what it tells of it."""

from __future__ import annotations

import os
from collections.abc import Callable

import typer

from agentbus.adapter.identity import Project, find_project
from agentbus.cli.text import one_line
from agentbus.client.client import Client
from agentbus.client.start import start
from agentbus.config import Configuration
from agentbus.digest import digest
from agentbus.harness import connect
from agentbus.harness import repository as repo
from agentbus.harness.connect import Outcome
from agentbus.harness.install import Plan
from agentbus.harness.programs import HARNESSES
from agentbus.harness.record import Record
from agentbus.runtime import exits
from agentbus.runtime.paths import locate

Work = Callable[[Record], list[Outcome]]

UNKNOWN = "(the bus picks one)"
"""The agent of a repository that `--dry-run` does not ask the bus for."""


def harnesses(name: str | None, config: str | None, *, dry: bool, remove: bool) -> Work:
    """Connects the one named, else all that are found; or disconnects all that were connected."""
    machine = connect.this_machine()
    program = connect.this_program(config)

    def work(record: Record) -> list[Outcome]:
        if not remove:
            return [
                connect.connect(each.name, each.targets(machine, program), record, dry=dry)
                for each in connect.choose(machine, name)
            ]
        return [
            connect.disconnect(each.name, each.targets(machine, program), record, dry=dry)
            for each in HARNESSES
            if name in (None, each.name)
        ]

    return work


def repository(
    agent: str | None, channels: list[str], configuration: Configuration, *, dry: bool
) -> Work:
    """Writes the repository's file, and has the bus make its channels. Raises what the bus does."""
    project = find_project(os.getcwd())
    if project.problem is not None:
        raise project.problem
    wanted = channels or project.channels or repo.own_channels(project.hint)
    named = agent or project.agent
    chosen = named or UNKNOWN if dry else _announce(project, named, wanted, configuration)
    target = repo.target(project.root, chosen, wanted)
    return lambda record: [connect.connect(repo.owner(project.root), [target], record, dry=dry)]


def _announce(
    project: Project, agent: str | None, channels: list[str], configuration: Configuration
) -> str:
    """Makes the channels; the agent's name."""
    start(configuration)
    with Client(locate(configuration.settings).socket) as client:
        client.hello(configuration)
        told = client.register(
            "agentbus",
            f"init-{digest(project.root.encode(), 8).hex()}",
            agent=agent,
            repository=project.hint,
            repository_root=project.root,
            channels=[],
        )
        for name in channels:
            kind = "memory" if name == repo.MEMORY else "ordinary"
            client.create_channel(told.attachment, name, kind=kind)
        client.release(told.attachment)
    return told.agent


def forget_repository(*, dry: bool) -> Work:
    """Takes the repository's file back; the channels stay."""
    project = find_project(os.getcwd())
    target = repo.target(project.root, "", [])
    return lambda record: [connect.disconnect(repo.owner(project.root), [target], record, dry=dry)]


def _what(plan: Plan, remove: bool) -> str:
    if not remove:
        return "changed"
    exactly = plan.after == plan.original
    return "put back" if exactly else "is without it; what was written since stays"


def tell(outcomes: list[Outcome], *, dry: bool, remove: bool) -> int:
    """What was done to which file; the exit code."""
    advice = {each.name: each.advice for each in HARNESSES if each.advice}
    for outcome in outcomes:
        for plan in outcome.changed if outcome.error is None or remove else []:
            if dry:
                typer.echo(plan.diff(), nl=False)
            else:
                typer.echo(f"{outcome.name}: {plan.path} {_what(plan, remove)}")
        for copy in outcome.kept:
            typer.echo(f"{outcome.name}: what was there before init stays in {copy}")
        if outcome.error is not None:
            message = one_line(outcome.error.message)
            typer.echo(f"agentbus: {outcome.error.code}: {outcome.name}: {message}", err=True)
        elif not outcome.changed:
            typer.echo(f"{outcome.name}: {'nothing to put back' if remove else 'is connected'}")
        elif outcome.name in advice and not (dry or remove):
            typer.echo(f"{outcome.name}: {advice[outcome.name]}")
    failed = any(outcome.error is not None for outcome in outcomes)
    return exits.FAILED if failed else exits.OK
