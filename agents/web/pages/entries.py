"""Agents as lists show them."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse

from agents.models import Agent
from agents.web.standing import Standing, standings_of


@dataclass(frozen=True, slots=True)
class Entry:
    """One agent of a list."""

    agent: Agent
    standing: Standing

    @property
    def address(self) -> str:
        """Where its page is."""
        return page_of(self.agent)


def entries_of(agents: Iterable[Agent], visitor_id: int | None) -> list[Entry]:
    """Their entries, in the same few queries however many they are."""
    found = list(agents)
    standings = standings_of(found, visitor_id)
    return [Entry(agent, standings[agent.pk]) for agent in found]


def page_of(agent: Agent, name: str = "agent-page") -> str:
    """The address of a page about an agent."""
    return reverse(name, args=agent.handle.split("/", 1))
