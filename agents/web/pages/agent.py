"""The page of one agent: what it is, how it is, and a box to ask it."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from agents.core.directory import find_askable
from agents.models import Agent
from agents.web.availability import Advice, Availability, advise, load_availability
from agents.web.pages.directory import page_of
from kit.clock import db_now

SHOWN_CHARS = 6000  # of each note: with the rest of the page under 100 KB
MAX_PROMPTS = 6


@dataclass(frozen=True, slots=True)
class Note:
    """A text the owner gave the agent, from its beginning."""

    title: str
    text: str
    is_cut: bool


@never_cache
@gzip_page
@require_safe
def agent_page(request: HttpRequest, owner: str, slug: str) -> HttpResponse:
    """`/agents/{owner}/{slug}`; absent, draft and closed to the visitor look the same."""
    agent = find_askable(f"{owner}/{slug}", request.user.pk)
    if agent is None:
        return render(request, "agents/absent.html", status=404)
    standing, advice = _now(agent, request)
    context = {
        "agent": agent,
        "standing": standing,
        "advice": advice,
        "is_owner": request.user.pk == agent.owner_id,
        "prompts": [prompt for prompt in agent.suggested_prompts if isinstance(prompt, str)][:MAX_PROMPTS],
        "notes": notes_of(agent),
        "shown_chars": SHOWN_CHARS,
        "standing_address": page_of(agent, "agent-standing"),
        "card_address": page_of(agent, "agent-card"),
        "usage_address": page_of(agent, "agent-usage"),
    }
    return render(request, "agents/agent.html", context)


@never_cache
@require_safe
def agent_availability(request: HttpRequest, owner: str, slug: str) -> HttpResponse:
    """`/agents/{owner}/{slug}/standing`: what of that page changes by the minute, in its words."""
    agent = find_askable(f"{owner}/{slug}", request.user.pk)
    if agent is None:
        raise Http404
    standing, advice = _now(agent, request)
    return JsonResponse(_as_json(standing, advice))


def notes_of(agent: Agent) -> list[Note]:
    """The owner's notes that are not empty."""
    texts = {"Its instructions": agent.claude_md, "How it is told to speak": agent.personalization_prompt}
    return [
        Note(title, text[:SHOWN_CHARS], len(text) > SHOWN_CHARS)
        for title, text in texts.items()
        if text and text.strip()
    ]


def _now(agent: Agent, request: HttpRequest) -> tuple[Availability, Advice]:
    visitor = request.user if request.user.is_authenticated else None
    standing = load_availability([agent], request.user.pk)[agent.pk]
    return standing, advise(agent, standing, visitor, db_now())


def _as_json(standing: Availability, advice: Advice) -> dict[str, Any]:
    return {
        "state": standing.state,
        "left": standing.left,
        "typically": standing.typically,
        "advice": advice.text,
        "mayAsk": advice.may_ask,
    }
