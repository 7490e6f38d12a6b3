"""Connecting harnesses to the bus and back, each for itself: a file that one of them cannot read
keeps nobody else from being connected."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from agentbus.config import CONFIG_VARIABLE
from agentbus.errors import ConfigInvalid
from agentbus.harness import install
from agentbus.harness.install import Plan
from agentbus.harness.programs import HARNESSES, Harness, Machine, Start, Target
from agentbus.harness.record import Record
from agentbus.runtime.paths import RUNTIME_VARIABLE

RECORD: Final = (".config", "agentbus", "init")
"""The record's directory, below the home."""


class Outcome(msgspec.Struct):
    """What became, or would become, of one harness (or repository)."""

    name: str
    plans: list[Plan] = []
    error: ConfigInvalid | None = None
    kept: list[str] = []
    """Copies that stay, since a file was put back without what others had written."""

    @property
    def changed(self) -> list[Plan]:
        """The files that are changed."""
        return [plan for plan in self.plans if plan.changes]


def this_machine(environ: Mapping[str, str] = os.environ) -> Machine:
    """The user's own."""
    return Machine(environ.get("HOME") or os.path.expanduser("~"), environ)


def record_directory(machine: Machine) -> str:
    """Where the record of this user is."""
    return os.path.join(machine.home, *RECORD)


def this_program(config: str | None, environ: Mapping[str, str] = os.environ) -> Start:
    """How a harness is to start what runs now: by a full path, since its PATH may be another, and
    by one on the user's PATH if there is one, which outlives a reinstallation."""
    script = os.path.join(os.path.dirname(sys.executable), "agentbus")
    found = shutil.which("agentbus", path=environ.get("PATH", ""))
    command = [sys.executable, "-P", "-m", "agentbus"]
    if os.access(script, os.X_OK):
        same = found is not None and os.path.realpath(found) == os.path.realpath(script)
        command = [os.path.abspath(found) if found and same else script]
    given = {} if config is None else {"config": os.path.abspath(config)}
    options = [part for name, value in given.items() for part in (f"--{name}", value)]
    names = [RUNTIME_VARIABLE] + ([] if config else [CONFIG_VARIABLE])
    variables = {name: os.path.abspath(environ[name]) for name in names if environ.get(name)}
    return Start(command, options, variables)


def choose(machine: Machine, name: str | None) -> list[Harness]:
    """The one named, else those that are found. Raises ConfigInvalid where none is."""
    if name is not None:
        return [harness for harness in HARNESSES if harness.name == name]
    found = [harness for harness in HARNESSES if harness.is_found(machine)]
    if not found:
        names = ", ".join(harness.title for harness in HARNESSES)
        raise ConfigInvalid(
            f"none of {names} was found; install one, or name one that is to come with --harness"
        )
    return found


def connect(owner: str, targets: Iterable[Target], record: Record, *, dry: bool) -> Outcome:
    """Puts in what is ours, or tells what that would change."""
    outcome = Outcome(owner)
    try:
        outcome.plans = install.plan(targets, record)
        if not dry:
            install.carry_out(outcome.plans, owner, record)
    except ConfigInvalid as error:
        outcome.error = error
    return outcome


def disconnect(owner: str, targets: Iterable[Target], record: Record, *, dry: bool) -> Outcome:
    """Takes out what `connect` has put in, also from where the harness kept its files then. The
    last file goes first: directories that were made belong to the first one in them."""
    outcome = Outcome(owner)
    known = {target.path: target for target in targets}
    names = {os.path.basename(path): target.changes for path, target in known.items()}
    changed = [path for path, changed in record.files.items() if changed.owner == owner]
    for path in reversed(changed):
        target = known.get(path) or Target(path, names.get(os.path.basename(path), ()))
        try:
            plan = install.plan_removal(target, record)
            outcome.plans.append(plan)
            kept = None if dry else install.take_out(plan, record)
        except ConfigInvalid as error:
            outcome.error = outcome.error or error
            continue
        outcome.kept += [] if kept is None else [kept]
    return outcome
