"""Names of agents, sessions and channels: what is allowed, which are picked, which are free.

An agent's name persists. A session's display name is its agent's, or `<agent>-<role>` for a
subagent, with the lowest number that makes it unique among the attached sessions of the bus:
Sam, Sam2, Sam3; R2D2, R2D2-2.

Two names that look the same should be the same, so a new one has nothing that cannot be seen
(decision 21). What was named before by a looser rule is still found under its name.
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

_INVISIBLE: Final = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),  # combining grapheme joiner
        (0x115F, 0x1160),  # Hangul fillers
        (0x17B4, 0x17B5),  # Khmer inherent vowels
        (0x180B, 0x180F),  # Mongolian variation selectors
        (0x2800, 0x2800),  # Braille without dots
        (0x3164, 0x3164),  # Hangul filler
        (0xFE00, 0xFE0F),  # variation selectors
        (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
        (0x16FE4, 0x16FE4),  # Khitan filler
        (0x1D159, 0x1D159),  # null notehead
        (0xE0100, 0xE01EF),  # variation selectors
    )
    for code in range(first, last + 1)
)
"""What is shown as nothing or as a blank although its category is that of a letter, mark or symbol:
Unicode's default ignorables beside format characters, and the blanks."""

_SPACES: Final = frozenset({"Cc", "Zs", "Zl", "Zp"})
"""Categories of what separates words; made a space where a name is made of a text."""

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


def check_new_name(name: str, what: str) -> None:
    """For names that nobody had before. Raises InvalidArgument unless `check_name` passes and what
    is seen of it is all of it: nothing invisible, no spaces but single ones within, NFC."""
    check_name(name, what)
    for at, character in enumerate(name):
        if _is_unseen(character):
            shown = unicodedata.name(character, "without a name")
            raise InvalidArgument(
                f"{what} {name!a} has U+{ord(character):04X} ({shown}) at {at}, which cannot be "
                "seen or told from a space; leave it out"
            )
    if name != " ".join(name.split()):
        raise InvalidArgument(f"{what} {name!a} has spaces at an end or next to each other")
    if _is_mark(name[0]):
        raise InvalidArgument(f"{what} {name!a} begins with a mark that belongs to a letter")
    composed = unicodedata.normalize("NFC", name)
    if composed != name:
        raise InvalidArgument(
            f"{what} {name!a} is spelt in an unusual form of its characters; in Unicode's NFC it "
            f"is {composed!a}"
        )


def _is_unseen(character: str) -> bool:
    return not character.isprintable() or character in _INVISIBLE


def _is_unfit(character: str) -> bool:
    return character in _TURNING or unicodedata.category(character) in _UNFIT


def one_line(text: str) -> str:
    """Somebody else's text (a directory's name, a task) as a new name may be; perhaps empty."""
    seen = unicodedata.normalize("NFC", "".join(map(_seen, text)))
    return _cut(" ".join(_without_first_marks(seen).split()), NAME_BYTES).rstrip()


def _seen(character: str) -> str:
    if unicodedata.category(character) in _SPACES:
        return " "
    return "" if _is_unseen(character) else character


def _without_first_marks(text: str) -> str:
    """A mark belongs to the letter before it, here to what somebody else has written there."""
    fit = (at for at, each in enumerate(text) if each != " " and not _is_mark(each))
    return text[next(fit, len(text)) :]


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


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
