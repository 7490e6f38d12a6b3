"""Names of agents, sessions and channels: what is allowed, which are picked, which are free.

An agent's name persists. A session's display name is its agent's, or `<agent>-<role>` for a
subagent, with the lowest number that makes it unique among the attached sessions of the bus:
Sam, Sam2, Sam3; R2D2, R2D2-2.
"""

from __future__ import annotations

import hashlib
import itertools
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from agentbus.errors import InvalidArgument

NAME_BYTES: Final = 128
ROLE_BYTES: Final = 48
"""What a display name takes over of a role, which may be a whole sentence."""

_NUMBER_BYTES: Final = 8

DEFAULT_ROLE: Final = "helper"
"""Of a subagent whose harness says nothing about it."""

_UNFIT: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that could end a line or an encoding: no name has them."""

_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Controls that show what follows in another order than it has."""

_PICKED: Final = """
    Ada Alba Alex Alma Amos Anna Anton Ari Asa Ben Bert Bo Bruno Cai Cara Carl Clara Cleo
    Cora Dan Dara Della Dora Edda Eli Ella Elmo Emil Emma Enno Eva Ezra Fay Felix Finn Flora
    Frida Gail Greta Gus Hal Hana Hugo Ida Ines Ira Iris Ivo Jada Jan Jill Joel Jona Jude
    Juna Kai Kira Koa Lara Lars Leo Levi Lia Lina Lou Luca Lucy Luna Mae Maja Marc Max Mia
    Milo Mina Moe Nadia Ned Nell Nico Nina Noa Nora Odin Olga Olive Omar Oona Oscar Otto Pam
    Paul Peer Pia Quinn Rafa Ray Remy Rhea Rita Robin Rosa Ruby Sage Sam Sara Seth Sina Sol
    Stella Sven Tara Tess Theo Tilda Tom Uma Una Vera Vico Viola Wes Wim Yara Yuri Zac Zara
    Zoe
"""

FRIENDLY: Final = tuple(_PICKED.split())
"""First names that are short and easy to tell apart; which one a repository gets is its hash's."""


def check_name(name: str, what: str) -> None:
    """Raises InvalidArgument unless it has 1 to 128 UTF-8 bytes and no control characters."""
    if any(_is_unfit(character) for character in name):
        raise InvalidArgument(
            f"{what} {name!a} has a control character, line separator or surrogate; leave it out"
        )
    size = len(name.encode())
    if not 1 <= size <= NAME_BYTES:
        raise InvalidArgument(f"{what} has {size} UTF-8 bytes; allowed are 1 to {NAME_BYTES}")


def _is_unfit(character: str) -> bool:
    return character in _TURNING or unicodedata.category(character) in _UNFIT


def one_line(text: str) -> str:
    """Somebody else's text (a directory's name, a task) as a name may be; perhaps empty."""
    fit = "".join(" " if _is_unfit(character) else character for character in text)
    return _cut(" ".join(fit.split()), NAME_BYTES).rstrip()


def pick_name(root: str, is_taken: Callable[[str], bool]) -> str:
    """A friendly name nobody has, the same for the same root as long as it is free."""
    return next(name for name in _candidates(root) if not is_taken(name))


def _candidates(root: str) -> Iterator[str]:
    digest = hashlib.blake2b(root.encode(errors="replace"), digest_size=8).digest()
    start = int.from_bytes(digest, "big") % len(FRIENDLY)
    names = FRIENDLY[start:] + FRIENDLY[:start]
    yield from names
    for first, second in itertools.permutations(names, 2):
        yield first + second
    for number in itertools.count(1):
        yield f"Agent-{number}"


def base_name(agent: str, child: str | None, role: str | None) -> str:
    """The display name of a session before it is made unique."""
    return agent if child is None else _cut(f"{agent}-{_role_word(role)}", NAME_BYTES)


def _role_word(role: str | None) -> str:
    """A role as one word: no spaces, nothing that could end a line, not too long."""
    return _cut(one_line(role or "").replace(" ", "-"), ROLE_BYTES) or DEFAULT_ROLE


def _cut(text: str, size: int) -> str:
    """At most so many UTF-8 bytes, no character in half."""
    return text.encode(errors="replace")[:size].decode(errors="ignore")


def free_name(base: str, is_taken: Callable[[str], bool]) -> str:
    """The base itself, or with the lowest number from 2 on that nobody has."""
    if not is_taken(base):
        return base
    stem = _cut(base, NAME_BYTES - _NUMBER_BYTES)
    joint = "-" if stem[-1:].isdigit() else ""
    numbered = (f"{stem}{joint}{number}" for number in itertools.count(2))
    return next(name for name in numbered if not is_taken(name))
