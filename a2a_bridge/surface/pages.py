"""The developer reference: try an agent from the browser, and read what can be sent.

The page is also shown as text for programs.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from a2a_bridge import settings
from a2a_bridge.surface.reference import errors, samples
from a2a_bridge.surface.reference.contents import key_of
from a2a_bridge.surface.reference.contents import reference as read_reference
from a2a_bridge.wire.dialects.dialect import Dialect
from a2a_bridge.wire.versions import DIALECTS
from accounts.oauth.pages import signed_in
from accounts.oauth.signin_methods import find_signin_methods
from agents.core.directory import AgentActivity, find_askable, load_agent_activity
from agents.models import Agent
from agents.web.directory import MAX_CHARS, DirectoryFilter, find, online_first, read_filter

MAX_FOUND = 6


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """An agent to pick. `facts`: what the page shows of a picked agent, with the names of ApiAgent."""

    agent: Agent
    facts: dict[str, Any]

    @property
    def as_json(self) -> str:
        """The JSON for the page's script."""
        return json.dumps(self.facts)


@dataclass(frozen=True, slots=True)
class FoundAgents:
    """The first agents that the directory's search finds, and the number of all that it finds."""

    wanted: DirectoryFilter
    count: int
    choices: Sequence[AgentChoice]

    @property
    def summary(self) -> str:
        """The number of agents in words."""
        if not self.count:
            return "No agent matches."
        words = "1 agent" if self.count == 1 else f"{self.count} agents"
        return (
            f"{words}, the first {len(self.choices)} are listed."
            if self.count > len(self.choices)
            else f"{words}."
        )


@never_cache
@gzip_page
@require_safe
def reference(request: HttpRequest) -> HttpResponse:
    """`/demos/a2a/`: with `?q=` the search for agents, with `?agent=owner/slug` that agent is picked.

    Without an agent that the visitor may ask, the page picks the first one of the directory.
    """
    found, picked = find_agents(request), _picked(request)
    if picked is None:
        askable = find(DirectoryFilter(), request.user.pk)
        picked = next(iter(_choices(online_first(askable)[:1])), None)
    context = {
        **contents(),
        "found": found,
        "picked": picked,
        "max_chars": MAX_CHARS,
        "caller": signed_in(request),
        "start": {
            "hub": settings.PUBLIC_URL,
            "agent": picked and picked.facts,
            "explanations": errors.explanations(),
            "dialects": [_speech(one) for one in DIALECTS],
        },
    }
    return render(request, "reference/page.html", context)


@never_cache
@require_safe
def found_agents(request: HttpRequest) -> HttpResponse:
    """`/demos/a2a/agents`: the results of the search, as a part of the page `/demos/a2a/` for its script."""
    context = {"found": find_agents(request), "picked": _picked(request)}
    return render(request, "reference/found.html", context)


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    """`/llms.txt`: the reference as Markdown, for programs that read."""
    return render(request, "reference/llms.txt", contents(), content_type="text/plain; charset=utf-8")


def contents() -> dict[str, Any]:
    """The values that the page and the text share."""
    return {
        "reference": read_reference(settings.PUBLIC_URL),
        "hub": settings.PUBLIC_URL,
        "sockets": settings.PUBLIC_URL.replace("http", "ws", 1),
        "cards": samples.cards(settings.PUBLIC_URL),
        "wait_s": settings.REPLY_WAIT_S,
        "dev_login": settings.DEV_LOGIN,
        "can_sign_in": find_signin_methods().is_any,
    }


def find_agents(request: HttpRequest) -> FoundAgents:
    """The agents that the directory's search finds for the visitor, agents that are online first."""
    wanted = read_filter(request)
    agents = find(wanted, request.user.pk)
    return FoundAgents(wanted, agents.count(), _choices(online_first(agents)[:MAX_FOUND]))


def _picked(request: HttpRequest) -> AgentChoice | None:
    agent = find_askable(request.GET.get("agent", "").removeprefix("@"), request.user.pk)
    return _choices([agent])[0] if agent else None


def _choices(agents: Iterable[Agent]) -> list[AgentChoice]:
    listed = list(agents)
    activity = load_agent_activity(listed)
    return [AgentChoice(agent, _facts(agent, activity[agent.pk])) for agent in listed]


def _speech(one: Dialect) -> dict[str, Any]:
    """A dialect for the page's script: its `methods` by operation, and a `message` to fill in."""
    return {
        "key": key_of(one),
        "title": one.description.title,
        "version": one.description.header,
        "methods": {method.operation: name for name, method in one.methods.items()},
        "message": one.sample_message,
    }


def _facts(agent: Agent, activity: AgentActivity) -> dict[str, Any]:
    return {
        "handle": agent.handle,
        "name": agent.name,
        "tagline": agent.tagline,
        "isolated": agent.isolated,
        "online": activity.is_online,
        "queriesToday": activity.queries_today,
        "dailyBudgetQueries": agent.daily_budget,
    }
