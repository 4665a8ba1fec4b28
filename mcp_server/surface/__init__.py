"""The HTTP surface: `/mcp`, the tools that the SDK serves, and what programs read about them."""
