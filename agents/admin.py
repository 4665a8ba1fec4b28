"""Django looks for the admin under this name."""

from agents.web.admin import agents, blocks, halts, rows, turns

__all__ = ["agents", "blocks", "halts", "rows", "turns"]
