"""The MCP surface, by the clients of the official SDK."""
