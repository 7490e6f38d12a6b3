"""Putting what is ours into a harness' files, and taking it out again.

A harness is planned as a whole before the first of its files is written. What was there before is
copied first; taking out gives exactly that back where the file is still as it was written, else it
takes out what is ours and leaves what others have written since.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff

import msgspec

from agentbus.errors import ConfigInvalid
from agentbus.harness import files
from agentbus.harness.changes import applied, undone
from agentbus.harness.files import Text
from agentbus.harness.json_edit import NotEditable
from agentbus.harness.jsonc import NotJson
from agentbus.harness.programs import Target
from agentbus.harness.record import Changed, Record, mark
from agentbus.harness.toml_edit import NotToml


class Plan(msgspec.Struct, frozen=True):
    """What is to become of one file. `original` is what taking out would leave."""

    path: str
    before: bytes | None
    after: bytes | None
    original: bytes | None = None

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return self.before != self.after

    def diff(self) -> str:
        """For people; a file that is not there has the name /dev/null."""
        old, new = (_lines(self.path, content) for content in (self.before, self.after))
        first, second = (
            "/dev/null" if content is None else self.path for content in (self.before, self.after)
        )
        return "".join(unified_diff(old, new, first, second, n=2))


def plan(targets: Iterable[Target], record: Record) -> list[Plan]:
    """How to put it in. Raises ConfigInvalid."""
    return [_plan(target, record) for target in targets]


def _plan(target: Target, record: Record) -> Plan:
    before = files.read(target.path)
    now = _decoded(target.path, before)
    with _told(target.path):
        after = _encoded(now, applied(target.changes, None if now is None else now.text))
    original = before
    if target.path in record.files:
        original = record.original(target.path)
        if mark(before) != record.files[target.path].written:
            original = _taken_out(target, before, original)
    return Plan(target.path, before, after, original)


def plan_removal(target: Target, record: Record) -> Plan:
    """How to take it out of a recorded file. Raises ConfigInvalid."""
    before = files.read(target.path)
    original = record.original(target.path)
    if mark(before) == record.files[target.path].written:
        return Plan(target.path, before, original, original)
    return Plan(target.path, before, _taken_out(target, before, original), original)


def _taken_out(target: Target, now: bytes | None, original: bytes | None) -> bytes | None:
    text, old = _decoded(target.path, now), _decoded(target.path, original)
    if text is None:
        return None
    with _told(target.path):
        left = undone(target.changes, text.text, None if old is None else old.text)
    return _encoded(text, left)


def carry_out(plans: Sequence[Plan], owner: str, record: Record) -> None:
    """Writes what is planned. Raises ConfigInvalid."""
    for each in plans:
        if not each.changes:
            continue
        known = record.files.get(each.path)
        made = files.make_directories(each.path)
        same = known is not None and record.original(each.path) == each.original
        copy = known.copy if known and same else record.keep(each.path, each.original)
        made = made or (known.made if known else [])
        record.note(each.path, Changed(owner, mark(each.after), copy, made))
        files.replace(each.path, each.before, each.after)


def take_out(each: Plan, record: Record) -> str | None:
    """Writes what is planned; where a copy stays, since the file is not what it was before."""
    known = record.files[each.path]
    files.replace(each.path, each.before, each.after)
    for directory in reversed(known.made):
        with contextlib.suppress(OSError):
            os.rmdir(directory)
    restored = each.after == each.original
    record.forget(each.path, drop_copy=restored)
    return None if restored or known.copy is None else record.copy_of(known.copy)


# ---- text


def _decoded(path: str, content: bytes | None) -> Text | None:
    return files.decode(path, content)


def _encoded(form: Text | None, text: str | None) -> bytes | None:
    """As the file was written."""
    return None if text is None else (form or Text("")).encode(text)


def _lines(path: str, content: bytes | None) -> list[str]:
    text = _decoded(path, content)
    lines = [] if text is None else text.text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """What the text does not allow, as an error that names the file."""
    try:
        yield
    except (NotJson, NotToml) as problem:
        raise ConfigInvalid(
            f"{path} cannot be read as what it is ({problem}); mend it, then run this again"
        ) from problem
    except NotEditable as problem:
        raise ConfigInvalid(f"{path} was left as it is: {problem}") from problem
