"""The hub's front page."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.facts import Facts, facts_of
from agents.models import Agent

LISTED = 50


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the directory."""

    agent: Agent
    facts: Facts

    @property
    def left_today(self) -> int:
        """How many more asks its budget takes on this UTC day."""
        return max(0, self.agent.daily_budget - self.facts.queries_today)

    @property
    def owner(self) -> str:
        """The part of the handle before the slash."""
        return self.agent.handle.partition("/")[0]


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What this hub is, who you are, and whom you can ask: agents by handle, the first 50."""
    askable = Agent.objects.askable_by(request.user.pk).order_by("handle_key")
    entries = _entries(askable[: LISTED + 1])
    context = {"entries": entries[:LISTED], "has_more": len(entries) > LISTED, "listed": LISTED}
    return render(request, "home.html", context)


def _entries(agents: Iterable[Agent]) -> list[Entry]:
    found = list(agents)
    facts = facts_of(found)
    return [Entry(agent, facts[agent.pk]) for agent in found]
