"""Tools and resources as they are listed in each revision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from agentbus.wire.mcp.revisions import Revision


class Tool(msgspec.Struct, frozen=True):
    """A tool; the schemas are JSON Schema 2020-12 with `type: object` at the root."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    annotations: dict[str, Any]
    meta: dict[str, Any] | None = None


def describe(tools: Iterable[Tool], revision: Revision) -> list[dict[str, Any]]:
    """The `tools` of a `tools/list` result, without what the revision does not know."""
    return [_describe(tool, revision) for tool in tools]


def _describe(tool: Tool, revision: Revision) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": tool.name}
    if revision.structured:
        shown["title"] = tool.title
    shown["description"] = tool.description
    shown["inputSchema"] = tool.input_schema
    if revision.structured:
        shown["outputSchema"] = tool.output_schema
    if revision.annotations:
        shown["annotations"] = tool.annotations
    if revision.structured and tool.meta is not None:
        shown["_meta"] = tool.meta
    return shown


class Resource(msgspec.Struct, frozen=True):
    """Something that can be read, of JSON."""

    uri: str
    name: str
    title: str
    description: str


MIME_TYPE: Final = "application/json"


def describe_resources(resources: Iterable[Resource], revision: Revision) -> list[dict[str, Any]]:
    """The `resources` of a `resources/list` result, without what the revision does not know."""
    return [
        {
            "uri": each.uri,
            "name": each.name,
            **({"title": each.title} if revision.structured else {}),
            "description": each.description,
            "mimeType": MIME_TYPE,
        }
        for each in resources
    ]
