"""The page of the MCP tools, from the table that the adapter serves."""

from __future__ import annotations

from typing import Any

from agentbus.adapter.tools import table as adapter_tools
from agentbus.config import Settings
from reference.markdown import NOTE, table


def tools() -> str:
    """Every MCP tool, from the table that the adapter serves."""
    parts = [NOTE.format(source="agentbus/adapter/tools.py"), "# Tools\n", TOOLS]
    parts += (_tool(tool) for tool in adapter_tools(Settings()))
    return "\n".join(parts)


def _tool(tool: Any) -> str:
    schema = tool.input_schema
    rows = [
        (
            f"`{name}`",
            "yes" if name in schema.get("required", ()) else "",
            _json_type(rule),
            rule.get("description", ""),
        )
        for name, rule in schema["properties"].items()
    ]
    text = f"## `{tool.name}`\n\n{tool.description}\n"
    text += f"\n{table(('argument', 'required', 'is', 'meaning'), rows)}" if rows else ""
    members = ", ".join(f"`{name}`" for name in tool.output_schema["properties"])
    return f"{text}\nResult: {members}.\n"


def _json_type(rule: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "enum" in rule:
        return " or ".join(f'`"{choice}"`' for choice in rule["enum"])
    if rule["type"] == "array":
        return f"list of {_json_type(rule['items'])}"
    if rule["type"] == "object" and rule.get("properties"):
        members = (f"`{name}`: {_json_type(member)}" for name, member in rule["properties"].items())
        return f"{{{', '.join(members)}}}"
    low, high = rule.get("minimum"), rule.get("maximum")
    bounds = f", {low} to {high}" if high is not None else f" from {low}" if low is not None else ""
    return f"{rule['type']}{bounds}"


TOOLS = """\
What an agent sees of `agentbus mcp`. Every result is one JSON document, both as structured content
and as text; a failure is a result with `isError` and an [error](errors.md) in it. The numbers below
are those of the default [configuration](configuration.md).
"""
