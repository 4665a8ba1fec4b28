"""The front page, the directory of the agents that a visitor may ask, and the page of each agent."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Case, IntegerField, When
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from agents.core.directory import find_askable
from agents.models import Agent
from agents.models.agent import HUB_MODES, AgentQuerySet
from agents.models.session import online
from agents.pages.availability import Advice, Availability, advise, load_availability
from kit.asgi import MAX_BODY_BYTES
from kit.clock import db_now

ON_FRONT_PAGE = 6
PER_PAGE = 24
MAX_CHARS = 200
MAX_WORDS = 6


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One agent of a list."""

    agent: Agent
    standing: Availability

    @property
    def address(self) -> str:
        """The address of the agent's page."""
        return page_of(self.agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFilter:
    """The search of a visitor. `text`: words that are looked for (`kit.full_text`)."""

    text: str = ""
    online: bool = False
    mine: bool = False

    @property
    def is_everything(self) -> bool:
        """True if no filter is set."""
        return self == DirectoryFilter()

    @property
    def query(self) -> str:
        """The query string of this filter; a page number may be added."""
        given = {"q": self.text, "online": "1" * self.online, "mine": "1" * self.mine}
        return urlencode({name: value for name, value in given.items() if value})


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The home page: this hub, the signed-in user, and a few agents to ask, those online first."""
    askable = online_first(Agent.objects.askable_by(request.user.pk))
    entries = entries_of(askable[: ON_FRONT_PAGE + 1], request.user.pk)
    context = {"entries": entries[:ON_FRONT_PAGE], "has_more": len(entries) > ON_FRONT_PAGE}
    return render(request, "home.html", context)


@never_cache
@require_safe
def directory(request: HttpRequest) -> HttpResponse:
    """`/agents`: agents the visitor may ask, by handle, with `q`, `online`, `mine` and `page`."""
    wanted = read_filter(request)
    page = Paginator(find(wanted, request.user.pk), PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "wanted": wanted,
        "page": page,
        "entries": entries_of(page.object_list, request.user.pk),
        "max_chars": MAX_CHARS,
    }
    return render(request, "agents/directory.html", context)


def read_filter(request: HttpRequest) -> DirectoryFilter:
    """The filter in the form; a character that is not printable counts as a space."""
    given, text = request.GET, request.GET.get("q", "")[:MAX_CHARS]
    printable = "".join(each if each.isprintable() else " " for each in text)
    return DirectoryFilter(
        text=" ".join(printable.split()[:MAX_WORDS]),
        online=given.get("online") == "1",
        mine=given.get("mine") == "1" and request.user.is_authenticated,
    )


def find(wanted: DirectoryFilter, visitor_id: int | None) -> AgentQuerySet:
    """The agents wanted that the visitor may ask, by relevance, then by handle."""
    found: AgentQuerySet = Agent.objects.askable_by(visitor_id)
    if wanted.mine:
        found = found.filter(owner_id=visitor_id)
    if wanted.online:
        found = found.filter(online())
    return found.matching(wanted.text)


def online_first(agents: AgentQuerySet) -> AgentQuerySet:
    """The same agents by handle, online ones before the others."""
    offline = Case(When(online(), then=0), default=1, output_field=IntegerField())
    return agents.order_by(offline, "handle_key")


def entries_of(agents: Iterable[Agent], visitor_id: int | None) -> list[DirectoryEntry]:
    """The entries of agents; the number of queries is constant."""
    found = list(agents)
    standings = load_availability(found, visitor_id)
    return [DirectoryEntry(agent, standings[agent.pk]) for agent in found]


def page_of(agent: Agent, name: str = "agent-page") -> str:
    """The address of a page about an agent."""
    return reverse(name, args=agent.handle.split("/", 1))


SHOWN_CHARS = 6000  # of each note: with the rest of the page under 100 KB
MAX_PROMPTS = 6


@never_cache
@gzip_page
@require_safe
def agent_page(request: HttpRequest, owner: str, slug: str) -> HttpResponse:
    """`/agents/{owner}/{slug}`; absent, draft and closed to the visitor look the same.

    `?task=` is for the page's script, which reads the task as the visitor does, over A2A.
    """
    agent = find_askable(f"{owner}/{slug}", request.user.pk)
    if agent is None:
        return render(request, "agents/absent.html", status=404)
    standing, advice = _load_standing(agent, request)
    context = {
        "agent": agent,
        "standing": standing,
        "advice": advice,
        "is_owner": request.user.pk == agent.owner_id,
        "opens_task": "task" in request.GET,
        "input_modes": json.dumps(agent.input_modes or HUB_MODES),
        "max_body_bytes": agent.max_body_bytes or MAX_BODY_BYTES,
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
    standing, advice = _load_standing(agent, request)
    shown = {"state": standing.state, "left": standing.left, "typically": standing.typically}
    return JsonResponse({**shown, "advice": advice.text, "mayAsk": advice.may_ask})


def notes_of(agent: Agent) -> list[dict[str, Any]]:
    """The texts that the owner gave the agent and that are not empty, each from its beginning."""
    texts = {"Its instructions": agent.claude_md, "How it is told to speak": agent.personalization_prompt}
    return [
        {"title": title, "text": text[:SHOWN_CHARS], "is_cut": len(text) > SHOWN_CHARS}
        for title, text in texts.items()
        if text and text.strip()
    ]


def _load_standing(agent: Agent, request: HttpRequest) -> tuple[Availability, Advice]:
    visitor = request.user if request.user.is_authenticated else None
    standing = load_availability([agent], request.user.pk)[agent.pk]
    return standing, advise(agent, standing, visitor, db_now())
