"""Django looks for the admin under this name."""

from agents.web.admin import agents, staff, turns

__all__ = ["agents", "staff", "turns"]
