"""The core's rows in the admin: agents, blocks and turns for their owners, everything else for the staff."""

from agents.admin import agents, blocks, halts, rows, turns

__all__ = ["agents", "blocks", "halts", "rows", "turns"]
