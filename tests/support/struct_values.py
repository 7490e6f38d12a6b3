"""Hypothesis strategies for everything that may travel: any value that a struct's types allow."""

from __future__ import annotations

import types
import typing
from typing import Any, Literal, NewType, Union

import msgspec
from hypothesis import strategies as st

INTEGERS = st.integers(-(2**63), 2**64 - 1)
"""What msgpack can carry. JSON readers keep fewer exact; ours keeps these."""

PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: INTEGERS,
    str: st.text(max_size=20),
    bool: st.booleans(),
    bytes: st.binary(max_size=20),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    msgspec.Raw: st.sampled_from([msgspec.Raw(b'{"content":"x"}'), msgspec.Raw(b"[1]")]),
    Any: st.dictionaries(st.text(max_size=5), st.integers(-9, 9), max_size=3),
}


def of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type as it stands in an annotation."""
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, NewType):
        return of_type(hint.__supertype__)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(argument) for argument in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(of_type(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(of_type(arguments[0]), of_type(arguments[1]), max_size=3)
    if origin is tuple:
        return st.tuples(*[of_type(argument) for argument in arguments])
    return of_struct(hint)


def of_struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Values of a struct, all its members drawn."""
    hints = typing.get_type_hints(kind)
    return st.builds(
        kind, **{name: of_type(hints[name]) for name in kind.__struct_fields__ if name in hints}
    )


def members(union: Any) -> tuple[type[msgspec.Struct], ...]:
    """The structs of a tagged union; one struct is a union of one."""
    return typing.get_args(union) or (union,)
