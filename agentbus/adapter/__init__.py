"""`agentbus mcp`: one harness session's way to the bus, MCP on stdio, JSON-RPC to the daemon."""
