"""The server's half of MCP over stdio, in both eras, as a state machine without IO.

    revision     asked for by                        differs in
    2024-11-05   initialize                          text results, plain tools
    2025-03-26   initialize                          + tool annotations, JSON-RPC batches
    2025-06-18   initialize                          + titles, output schemas, structured results,
                                                       `_meta` of tools; batches are gone
    2025-11-25   initialize                          (nothing that concerns us)
    2026-07-28   `_meta` of each request             + server/discover, resultType, ttlMs,
                                                       cacheScope, subscriptions/listen;
                                                       initialize, ping and resources/subscribe
                                                       are gone

A line is JSON, ends with LF, and has at most 8 MiB. `server.McpServer` takes bytes and gives
events; tool calls and reads of resources come out of it and are answered through it. One process
may be asked in both eras, in turn: a request belongs to the modern one if its `_meta` names a
revision, and then nothing about it is taken from an earlier request.
"""

from agentbus.wire.mcp.catalogue import Resource, Tool
from agentbus.wire.mcp.events import Cancelled, Event, Greeted, Line, ResourceRead, Say, ToolCall
from agentbus.wire.mcp.responses import ServerInfo
from agentbus.wire.mcp.server import McpServer

__all__ = [
    "Cancelled",
    "Event",
    "Greeted",
    "Line",
    "McpServer",
    "Resource",
    "ResourceRead",
    "Say",
    "ServerInfo",
    "Tool",
    "ToolCall",
]
