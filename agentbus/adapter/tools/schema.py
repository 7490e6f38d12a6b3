"""Parts that schemas of tools are made of: the little of JSON Schema that `arguments` checks."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

MAX_NAME: Final = 128
MAX_PAGE: Final = 1000
MIN_KIB: Final = 4
MAX_KIB: Final = 4096

INTEGER: Final[Schema] = {"type": "integer"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
LIST: Final[Schema] = {"type": "array"}
KIND: Final[Schema] = {"type": "string", "enum": ["ordinary", "memory"]}

READS: Final = {"readOnlyHint": True, "openWorldHint": False}
ADDS: Final = {"destructiveHint": False, "openWorldHint": False}
SETS: Final = ADDS | {"idempotentHint": True}
ALTERS: Final = {"destructiveHint": True, "openWorldHint": False}
REMOVES: Final = ALTERS | {"idempotentHint": True}


def members(properties: Schema, *required: str) -> Schema:
    """An object with these members, and perhaps others.

    Results require none: clients (the TypeScript SDK, so Gemini CLI and opencode) hold failures,
    which have `error` instead, against the same schema, and hide one that does not fit.
    """
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


def arguments(properties: Schema, *required: str) -> Schema:
    """An object with these members alone."""
    return members(properties, *required) | {"additionalProperties": False}


def text(description: str | None = None) -> Schema:
    """Any string."""
    return {"type": "string", "description": description} if description else {"type": "string"}


def texts(*names: str) -> Schema:
    """Members that are strings."""
    return {name: text() for name in names}


def name(description: str | None = None) -> Schema:
    """A string as `model.names` wants it: not empty, so many bytes, no control characters."""
    return text(description) | {"maxLength": MAX_NAME}


def whole(low: int, high: int | None = None, description: str | None = None) -> Schema:
    """A whole number within bounds."""
    schema: Schema = {"type": "integer", "minimum": low}
    if high is not None:
        schema["maximum"] = high
    if description:
        schema["description"] = description
    return schema


def many(items: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": items}


def limit() -> Schema:
    """Of a page."""
    return whole(1, MAX_PAGE)


def max_kib(description: str | None = None) -> Schema:
    """A ceiling that the caller sets."""
    return whole(MIN_KIB, MAX_KIB, description)


REFERENCES: Final[Schema] = many(
    arguments(
        {
            "kind": {"type": "string", "enum": ["url", "unix_path", "windows_path"]},
            "value": {"type": "string"},
        },
        "kind",
        "value",
    )
)
METADATA: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}
