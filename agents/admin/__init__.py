"""The Django admin of agents."""

from agents.admin import agents, records

__all__ = ["agents", "records"]
