"""The core's rows in the admin: agents, blocks and turns for their owners, everything else for the staff."""

from agents.admin import agents, blocks, rows, turns

__all__ = ["agents", "blocks", "rows", "turns"]
