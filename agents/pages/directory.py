"""The front page, the directory of the agents that a visitor may ask, and the page of each agent."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Case, IntegerField, Q, When
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.pages import user_post
from accounts.quotas import MEBIBYTE, QuotaExceeded
from agents import settings
from agents.core.card_settings import MAX_TAG_CHARS, TAG
from agents.core.directory import find_askable
from agents.core.shopping import (
    add_favourite,
    count_tags,
    favourites_among,
    find_favourites,
    has_tag,
    recent_agents,
    remove_favourite,
    sort_agents,
)
from agents.models import Agent, Turn
from agents.models.agent import HUB_MODES, AgentQuerySet
from agents.models.session import online
from agents.pages.availability import Advice, Availability, advise, load_availability
from agents.transcript.files import MAX_FILE_BYTES
from kit.asgi import MAX_BODY_BYTES
from kit.clock import db_now
from kit.filters import Filter, Filters, one_of, page_of

ON_FRONT_PAGE = 6
PER_PAGE = 24
MAX_CHARS = 200
MAX_WORDS = 6
ORDER_NAMES = {"handle": "name", "use": "most used", "rate": "best rated", "latency": "fastest"}


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One agent of a list, with its availability."""

    agent: Agent
    standing: Availability
    is_favourite: bool = False

    @property
    def address(self) -> str:
        """The address of the agent's page."""
        return address_of(self.agent)


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The home page: this hub, the signed-in user, and a few agents to ask, online ones first."""
    askable = online_first(Agent.objects.askable_by(request.user.pk))
    entries = entries_of(askable[: ON_FRONT_PAGE + 1], request.user.pk)
    context = {"entries": entries[:ON_FRONT_PAGE], "has_more": len(entries) > ON_FRONT_PAGE}
    return render(request, "home.html", context)


@never_cache
@require_safe
def directory(request: HttpRequest) -> HttpResponse:
    """`/agents`: the agents that the visitor may ask, by the filters of `read_filters`; and `?page=`."""
    filters, visitor_id = read_filters(request), request.user.pk
    page = page_of(request, find_chosen(filters, visitor_id), PER_PAGE)
    tags = count_tags(Agent.objects.askable_by(visitor_id))
    context: dict[str, Any] = {
        "filters": filters,
        "page": page,
        "entries": entries_of(page.object_list, visitor_id),
        "recent": [] if filters.chosen or page.number > 1 else recent_agents(visitor_id),
        "tags": [(tag, count, f"?{urlencode(filters.chosen | {'tag': tag})}") for tag, count in tags],
        "without_tag": urlencode({name: value for name, value in filters.chosen.items() if name != "tag"}),
        "orders": ORDER_NAMES,
        "max_chars": MAX_CHARS,
    }
    return render(request, "agents/directory.html", context)


def read_search(typed: str) -> str:
    """The normalized words of a search; a character that is not printable counts as a space."""
    printable = "".join(each if each.isprintable() else " " for each in typed[:MAX_CHARS])
    return " ".join(printable.split()[:MAX_WORDS])


def read_filters(request: HttpRequest) -> Filters:
    """The filters of the directory: words, a tag, only online, own or favourite agents; and the order."""
    visitor_id = request.user.pk
    own = Filter("mine", one_of("1" if visitor_id else ""), lambda value: Q(owner_id=visitor_id))
    marked = Filter("favourites", one_of("1" if visitor_id else ""), lambda value: find_favourites(visitor_id))
    declared = (
        Filter("q", read_search),
        Filter("tag", _read_tag, has_tag),
        Filter("online", one_of("1"), lambda value: online()),
        own,
        marked,
        Filter("sort", one_of(ORDER_NAMES)),
    )
    return Filters(request, declared)


def _read_tag(given: str) -> str:
    return given if len(given) <= MAX_TAG_CHARS and re.match(TAG, given) else ""


def find(visitor_id: int | None, typed: str = "", *, online_only: bool = False) -> AgentQuerySet:
    """The agents that the visitor may ask and whose texts have the typed words, by relevance, then by handle."""
    found: AgentQuerySet = Agent.objects.askable_by(visitor_id)
    if online_only:
        found = found.filter(online())
    return found.matching(read_search(typed))


def find_chosen(filters: Filters, visitor_id: int | None) -> AgentQuerySet:
    """The agents that match the filters and words of a visitor, in the chosen order, else by relevance."""
    found: AgentQuerySet = filters.choose(Agent.objects.askable_by(visitor_id))
    return sort_agents(found.matching(filters.chosen.get("q", "")), filters.chosen.get("sort", ""))


def online_first(agents: AgentQuerySet) -> AgentQuerySet:
    """Order agents: online ones first, then by handle."""
    offline = Case(When(online(), then=0), default=1, output_field=IntegerField())
    return agents.order_by(offline, "handle_key")


def entries_of(agents: Iterable[Agent], visitor_id: int | None) -> list[DirectoryEntry]:
    """The entries of agents; the number of queries is constant."""
    found = list(agents)
    standings = load_availability(found, visitor_id)
    marked = favourites_among(found, visitor_id)
    return [DirectoryEntry(agent, standings[agent.pk], agent.pk in marked) for agent in found]


def address_of(agent: Agent, name: str = "agent-page") -> str:
    """The address of a page about an agent."""
    return reverse(name, args=agent.handle.split("/", 1))


SHOWN_CHARS = 6000  # of each text, so that the page stays under 100 KB
MAX_PROMPTS = 6


@never_cache
@gzip_page
@require_safe
def agent_page(request: HttpRequest, owner: str, slug: str) -> HttpResponse:
    """`/agents/{owner}/{slug}`; agents that are absent, drafts or closed to the visitor give the same page.

    `?task=` is for the page's script, which reads the task over A2A as the visitor. `?again=` fills the form with
    a question that the visitor asked before, by its chat id.
    """
    agent = find_askable(f"{owner}/{slug}", request.user.pk)
    if agent is None:
        return render(request, "agents/absent.html", status=404)
    context = {
        **composer_of(agent, request),
        "is_owner": request.user.pk == agent.owner_id,
        "is_favourite": bool(favourites_among([agent], request.user.pk)),
        "opens_task": "task" in request.GET,
        "again": _find_question(request, agent),
        "agent_address": address_of(agent),
        "prompts": [prompt for prompt in agent.suggested_prompts if isinstance(prompt, str)][:MAX_PROMPTS],
        "notes": notes_of(agent),
        "shown_chars": SHOWN_CHARS,
        "card_address": address_of(agent, "agent-card"),
        "usage_address": address_of(agent, "agent-usage"),
    }
    return render(request, "agents/agent.html", context)


def _find_question(request: HttpRequest, agent: Agent) -> str:
    """The visitor's own question that is to be asked again; empty without one."""
    chat_id = request.GET.get("again", "")
    if not (request.user.pk and chat_id and chat_id.isprintable()):
        return ""
    asked = Turn.objects.asked_by(request.user.pk).filter(chat_id=chat_id, agent=agent)
    return asked.values_list("question", flat=True).first() or ""


@user_post
def mark_favourite(request: HttpRequest, user: User, owner: str, slug: str) -> HttpResponse:
    """`POST /agents/{owner}/{slug}/favourite`: mark the agent, or with an empty `on` no longer; then go back."""
    agent = find_askable(f"{owner}/{slug}", user.pk)
    if agent is None:
        raise Http404
    try:
        if request.POST.get("on"):
            add_favourite(user, agent)
        else:
            remove_favourite(user, agent)
    except QuotaExceeded as full:
        messages.error(request, f"Not marked: {full}.")
    back = request.POST.get("next", "")
    is_own = back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return HttpResponseRedirect(back if is_own else address_of(agent))


def composer_of(agent: Agent, request: HttpRequest) -> dict[str, Any]:
    """The context of a page on which the visitor may ask an agent (`agents/ask.html`)."""
    standing, advice = _load_standing(agent, request)
    return {
        "agent": agent,
        "standing": standing,
        "advice": advice,
        "input_modes": json.dumps(agent.taken_modes),
        "taken_files": ", ".join(["text", "JSON", *(mode for mode in agent.taken_modes if mode not in HUB_MODES)]),
        "max_body_bytes": agent.max_body_bytes or MAX_BODY_BYTES,
        "max_file_bytes": MAX_FILE_BYTES,
        "max_files_bytes": settings.FILES_PER_ASK_MB * MEBIBYTE,
        "standing_address": address_of(agent, "agent-standing"),
    }


@never_cache
@require_safe
def agent_availability(request: HttpRequest, owner: str, slug: str) -> HttpResponse:
    """`/agents/{owner}/{slug}/standing`: the availability and advice of that page as JSON, for its script."""
    agent = find_askable(f"{owner}/{slug}", request.user.pk)
    if agent is None:
        raise Http404
    standing, advice = _load_standing(agent, request)
    shown = {"state": standing.state, "left": standing.left, "typically": standing.typically}
    return JsonResponse({**shown, "advice": advice.text, "mayAsk": advice.may_ask})


def notes_of(agent: Agent) -> list[dict[str, Any]]:
    """The beginnings of the owner's texts for the agent, without empty ones."""
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
