"""What somebody typed, as terms: never a syntax error, whatever it is.

    word        must match, as must all others       pol-358 is the phrase of its parts
    "a phrase"  its words next to each other
    begin*      whatever begins so; `"a phra"*` as well; a lone * is everything
    -not        must not match; -"a phrase" and -begin* as well
    --word      a word, literally: options of commands are often looked for

What holds no letter, digit or symbol that is indexed is passed over, and finds nothing where there
is nothing else. Negations alone mean everything else. A quote without its partner is no quote.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentbus.errors import InvalidArgument
from agentbus.search import normalise
from agentbus.search.normalise import Term

MAX_BYTES: Final = 4096

_QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟«»\uff02", '"'))
_CHUNK: Final = re.compile(r'(?P<no>-?)"(?P<phrase>[^"]*)"(?P<star>\*?)|(?P<word>[^\s"]+)')


class Query(msgspec.Struct, frozen=True):
    """All of `wanted` and none of `unwanted`; `nothing` where only the unfindable was asked for.

    Without either, and without `nothing`, it is everything.
    """

    wanted: tuple[Term, ...] = ()
    unwanted: tuple[Term, ...] = ()
    nothing: bool = False


def parse(typed: str) -> Query:
    """Raises InvalidArgument where it is larger than `MAX_BYTES`."""
    size = len(typed.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        raise InvalidArgument(
            f"query has {size} bytes, at most {MAX_BYTES} are allowed: give the few words that "
            "tell what you look for from everything else"
        )
    wanted: dict[Term, None] = {}
    unwanted: dict[Term, None] = {}
    unfindable = not _CHUNK.search(typed) and bool(typed.strip())
    for chunk in _CHUNK.finditer(typed.translate(_QUOTES)):
        negated, text, prefix = _read(chunk)
        found = normalise.term(text, prefix=prefix)
        if found is not None:
            (unwanted if negated else wanted)[found] = None
        elif not negated and not prefix:
            unfindable = True
    nothing = unfindable and not wanted and not unwanted
    return Query(tuple(wanted), tuple(unwanted), nothing)


def _read(chunk: re.Match[str]) -> tuple[bool, str, bool]:
    """Whether it is negated, its text, and whether that is a prefix."""
    word = chunk["word"]
    if word is None:
        return bool(chunk["no"]), chunk["phrase"], bool(chunk["star"])
    negated = word.startswith("-") and not word.startswith("--") and len(word) > 1
    text = word[1:] if negated else word
    return negated, text, text.endswith("*")
