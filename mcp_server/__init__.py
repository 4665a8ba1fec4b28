"""The MCP surface: the agents of the hub as tools, over Streamable HTTP without sessions (docs/adr/0114)."""
