"""The developer reference, also as text for programs; and the page of a user's own questions to agents."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from a2a_bridge import settings
from a2a_bridge.service.my_questions import (
    SEARCHED,
    AskedQuestion,
    QuestionQuery,
    asked_agents,
    find_questions,
    read_query,
)
from a2a_bridge.surface.reference import errors, samples
from a2a_bridge.surface.reference.contents import key_of
from a2a_bridge.surface.reference.contents import reference as read_reference
from a2a_bridge.surface.reference.errors import failures, refusals
from a2a_bridge.wire.dialects.dialect import Dialect
from a2a_bridge.wire.versions import DIALECTS
from accounts.models import User
from accounts.oauth.signin_methods import find_signin_methods
from accounts.pages import signed_in, user_page
from agents.core.directory import find_askable, load_agent_activity
from agents.core.explanations import OUTCOME_LABELS, explain
from agents.core.reasons import Explanation
from agents.models import Agent
from agents.models.choices import Interruption, Outcome, TurnFailure
from agents.pages.directory import MAX_CHARS, find, find_chosen, online_first, read_filters
from clawbridge.shapes import QuestionState
from kit.filters import Filters

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

    filters: Filters
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
        askable = find(request.user.pk)
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
    filters = read_filters(request)
    agents = find_chosen(filters, request.user.pk)
    return FoundAgents(filters, agents.count(), _choices(online_first(agents)[:MAX_FOUND]))


def _picked(request: HttpRequest) -> AgentChoice | None:
    agent = find_askable(request.GET.get("agent", "").removeprefix("@"), request.user.pk)
    return _choices([agent])[0] if agent else None


def _choices(agents: Iterable[Agent]) -> list[AgentChoice]:
    listed = list(agents)
    load_agent_activity(listed)
    return [AgentChoice(agent, _facts(agent)) for agent in listed]


def _speech(one: Dialect) -> dict[str, Any]:
    """A dialect for the page's script: its `methods` by operation, and a `message` to fill in."""
    return {
        "key": key_of(one),
        "title": one.description.title,
        "version": one.description.header,
        "methods": {method.operation: name for name, method in one.methods.items()},
        "message": one.sample_message,
    }


def _facts(agent: Agent) -> dict[str, Any]:
    return {
        "handle": agent.handle,
        "name": agent.name,
        "tagline": agent.tagline,
        "isolated": agent.isolated,
        "online": agent.activity.is_online,
        "queriesToday": agent.activity.queries_today,
        "dailyBudgetQueries": agent.daily_budget,
    }


SHOWN_CHARS = 400
STATES: dict[QuestionState, str] = {
    "queued": "waiting",
    "open": OUTCOME_LABELS[None],
    "input_required": explain(Outcome.COMPLETED, Interruption.INPUT_REQUIRED).label,
    "auth_required": explain(Outcome.COMPLETED, Interruption.AUTH_REQUIRED).label,
    "completed": OUTCOME_LABELS[Outcome.COMPLETED],
    "rejected": explain(Outcome.FAILED, TurnFailure.REJECTED).label,
    "canceled": explain(Outcome.FAILED, TurnFailure.CANCELED).label,
    "failed": OUTCOME_LABELS[Outcome.FAILED],
    "denied": OUTCOME_LABELS[Outcome.DENIED],
}
NO_TASK = "It was not asked over A2A: see “What happened” for what the hub keeps of it."
NOT_OPEN = "You may not ask this agent any more, so its reply is not shown."
FILTERS = ("q", "agent", "state", "day")


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """One question as the page shows it. `note`: why it has no reply; empty where the script looks for one."""

    question: AskedQuestion

    @property
    def state(self) -> str:
        """The state of the question, in a word or two."""
        return STATES["queued"] if self.question.state == "queued" else self._explanation.label

    @property
    def colour(self) -> str:
        """The class of its badge."""
        return (
            "good" if self.question.outcome == Outcome.COMPLETED else "bad" if self._explanation.is_fault else ""
        )

    @property
    def why(self) -> str:
        """The reason why the question was refused, or not answered."""
        return self._explanation.caller if self._has_no_answer else ""

    @property
    def end_pattern(self) -> str:
        """A regular expression for the text of the task, which `why` replaces; empty when there is a reply."""
        return _end_patterns().get(self.question.reason, "") if self._has_no_answer else ""

    @property
    def _has_no_answer(self) -> bool:
        return self.question.outcome in (Outcome.FAILED, Outcome.DENIED)

    @property
    def _explanation(self) -> Explanation:
        return explain(self.question.outcome, self.question.reason)

    @property
    def page(self) -> str:
        """The address of the agent's page."""
        return reverse("agent-page", args=self.question.handle.split("/", 1))

    @property
    def note(self) -> str:
        """The reason why the question has no reply; empty where the script looks for a reply."""
        if not self.question.is_askable:
            return NOT_OPEN
        return "" if self.question.task_id else NO_TASK


@cache
def _end_patterns() -> Mapping[str, str]:
    """The regular expressions, by reason, for the text of a task without a reply."""
    return {one.reason: one.pattern for one in (*refusals(), *failures())}


@user_page
def my_questions(request: HttpRequest, asker: User) -> HttpResponse:
    """`/questions/all`: single questions, newest first; with the query of `GET /api/v1/questions`."""
    given, error = {name: str(value) for name, value in request.GET.items()}, ""
    try:
        query = read_query(given)
    except ValueError as wrong:
        query, error = QuestionQuery(), f"Nothing was searched, so all questions are shown. {wrong}"
    page = find_questions(asker.pk, query)
    kept = {name: value for name in (*FILTERS, "tz") if (value := given.get(name)) and not error}
    context = {
        "rows": [ShownQuestion(one) for one in page.questions if query.state in (None, one.state)],
        "query": query,
        "typed": given,
        "error": error,
        "agents": asked_agents(asker.pk),
        "states": STATES,
        "older": urlencode({**kept, "before": page.next}) if page.next else "",
        "newest": urlencode(kept),
        "here_query": urlencode({**kept, "before": query.before} if query.before else kept),
        "searched": f"{SEARCHED:,}",
        "shown_chars": SHOWN_CHARS,
    }
    return render(request, "questions.html", context, status=400 if error else 200)
