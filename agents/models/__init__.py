"""The nouns of the core, one module each."""

from agents.models.agent import Agent, DailyUsage
from agents.models.presence import Connection, Process
from agents.models.session import Session
from agents.models.turn import Turn

__all__ = ["Agent", "Connection", "DailyUsage", "Process", "Session", "Turn"]
