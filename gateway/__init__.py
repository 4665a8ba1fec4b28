"""Surface and link: the WebSocket protocol `a2a-v1` of teams of agents (docs/reference/gateway.md)."""
