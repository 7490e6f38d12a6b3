"""The page of the adapter protocol, from `agentbus.wire.rpc`."""

from __future__ import annotations

import types
import typing
from typing import Any, Literal, NewType, Union

import msgspec

from agentbus.wire import rpc
from reference.markdown import NOTE, prose, table


def protocol() -> str:
    """Every method and notification, from `agentbus.wire.rpc`."""
    parts = [
        NOTE.format(source="agentbus/wire/rpc.py"),
        "# The adapter protocol\n",
        f"{prose(rpc.__doc__).partition('The classes below')[0].strip()}\n",
        f"Protocol number {rpc.PROTOCOL}. A line has at most {rpc.MAX_LINE // 1024**2} MiB, its "
        "newline included. Members that are left\nout have the value in the last column. Try it: "
        "[a few lines to the socket](../how-to/by-hand.md).\n",
        "## Methods\n",
        *(_method(name, *shapes) for name, shapes in rpc.METHODS.items()),
        "## Notifications\n",
        *(_notification(name, shape) for name, shape in rpc.NOTIFICATIONS.items()),
        "## Shapes inside these\n",
        *(_shape(shape, 3) for shape in _inner_shapes()),
    ]
    return "\n".join(parts)


def _method(name: str, params: type[rpc.Params], result: type[rpc.Params]) -> str:
    return f"### `{name}`\n\n{_member_list('Params', params)}\n{_member_list('Result', result)}"


def _notification(name: str, params: type[rpc.Params]) -> str:
    return f"### `{name}`\n\n{_member_list('Params', params)}"


def _member_list(title: str, shape: type[msgspec.Struct]) -> str:
    text = f"**{title}.** {prose(shape.__doc__)}\n"
    return f"{text}\n{_members(shape)}" if shape.__struct_fields__ else text


def _shape(shape: type[msgspec.Struct], level: int) -> str:
    return f"{'#' * level} {shape.__name__}\n\n{prose(shape.__doc__)}\n\n{_members(shape)}"


def _members(shape: type[msgspec.Struct]) -> str:
    hints = typing.get_type_hints(shape)
    rows = (
        (f"`{field.name}`", _type(hints[field.name]), _default(field))
        for field in msgspec.structs.fields(shape)
    )
    return table(("member", "type", "if absent"), rows)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default_factory()).decode()}`"
    return f"`{msgspec.json.encode(field.default).decode()}`"


def _type(hint: Any) -> str:
    """A type as JSON people call it."""
    if isinstance(hint, NewType):
        return _type(hint.__supertype__)
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(argument) for argument in arguments)
    if origin is Literal:
        return " or ".join(f'`"{argument}"`' for argument in arguments)
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin is tuple:
        return f"[{', '.join(_type(argument) for argument in arguments)}]"
    if origin is dict:
        return f"object of {_type(arguments[1])}"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    return NAMES[hint]


NAMES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Any: "any",
    msgspec.Raw: "envelope",
}


def _inner_shapes() -> list[type[msgspec.Struct]]:
    """Structs that members refer to, in the order of their first mention."""
    outer = [shape for pair in rpc.METHODS.values() for shape in pair]
    found: dict[type[msgspec.Struct], None] = {}
    for shape in [*outer, *rpc.NOTIFICATIONS.values()]:
        for hint in typing.get_type_hints(shape).values():
            found.update(dict.fromkeys(_structs(hint)))
    return [shape for shape in found if shape not in outer]


def _structs(hint: Any) -> list[type[msgspec.Struct]]:
    """A struct before those of its own members."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        members = typing.get_type_hints(hint).values()
        return [hint, *(shape for member in members for shape in _structs(member))]
    return [shape for argument in typing.get_args(hint) for shape in _structs(argument)]
