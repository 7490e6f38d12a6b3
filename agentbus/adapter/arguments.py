"""Checks a tool's arguments against its input schema, and says exactly what is allowed.

Knows the part of JSON Schema that `tools` uses. null counts as left out where an argument is
optional, since many clients write it so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentbus.adapter.tools.schema import Schema
from agentbus.errors import InvalidArgument
from agentbus.wire.mcp import Tool

_SHOWN: Final = 60
"""Characters of a refused value that are repeated in the error."""


def check(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as given, without what was null. Raises InvalidArgument."""
    required = tool.input_schema.get("required", ())
    given = {
        name: value for name, value in arguments.items() if value is not None or name in required
    }
    _object(f"{tool.name}: ", "", tool.input_schema, given)
    return given


def _check(context: str, name: str, schema: Schema, value: Any) -> None:
    """`name` is the value's path in the arguments, such as `references[0].kind`."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = next((kind for kind in kinds if _TYPES[kind](value)), None)
    if kind is None:
        raise _refused(context, name, value, schema)
    if kind == "object":
        _object(context, name + ".", schema, value)
    elif kind == "array":
        for index, item in enumerate(value):
            _check(context, f"{name}[{index}]", schema["items"], item)
    elif not _within(schema, value):
        raise _refused(context, name, value, schema)


def _object(context: str, prefix: str, schema: Schema, value: dict[str, Any]) -> None:
    properties: Schema = schema.get("properties", {})
    others: Schema | bool = schema.get("additionalProperties", True)
    for name, member in value.items():
        rule = properties.get(name, others)
        if rule is False:
            known = ", ".join(prefix + known for known in properties) or "none"
            raise InvalidArgument(
                f"{context}there is no argument {_short(prefix + name)}; allowed: {known}"
            )
        if isinstance(rule, dict):
            _check(context, prefix + name, rule, member)
    for name in schema.get("required", ()):
        if name not in value:
            raise InvalidArgument(
                f"{context}{prefix}{name} is missing; it is {_allowed(properties[name])}"
            )


def _within(schema: Schema, value: Any) -> bool:
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, str):
        return "maxLength" not in schema or _is_name(schema, value)
    low, high = schema.get("minimum"), schema.get("maximum")
    return (low is None or value >= low) and (high is None or value <= high)


def _is_name(schema: Schema, value: str) -> bool:
    """What has a `maxLength` is a name: measured in UTF-8, not empty, no control characters."""
    return 1 <= len(value.encode()) <= schema["maxLength"] and not any(map(_is_control, value))


def _is_control(letter: str) -> bool:
    return letter < " " or "\x7f" <= letter <= "\x9f"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value)


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_whole,
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}


def _refused(context: str, name: str, value: Any, schema: Schema) -> InvalidArgument:
    shown = msgspec.json.encode(value).decode()
    return InvalidArgument(
        f"{context}{_short(name)} is {_short(shown)}; allowed is {_allowed(schema)}"
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _allowed(schema: Schema) -> str:
    if "enum" in schema:
        return " or ".join(f'"{choice}"' for choice in schema["enum"])
    if "maxLength" in schema:
        return f"a string of 1 to {schema['maxLength']} bytes without control characters"
    if isinstance(schema["type"], list):
        return "a string, a number, true, false or null"
    text = _KINDS[schema["type"]]
    low, high = schema.get("minimum"), schema.get("maximum")
    if high is not None:
        return f"{text} from {low} to {high}"
    return text if low is None else f"{text} from {low} up"


_KINDS: Final = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}
