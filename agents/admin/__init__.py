"""The core's rows in the admin: agents and turns for their owners, everything else for the staff."""

from agents.admin import agents, rows, turns

__all__ = ["agents", "rows", "turns"]
