"""The arguments of the tools."""
