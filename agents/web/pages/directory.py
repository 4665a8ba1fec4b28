"""The front page and the directory: the agents that a visitor may ask, searched and in pages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Case, IntegerField, Q, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.models import Agent
from agents.models.agent import AgentQuerySet
from agents.models.session import online
from agents.web.availability import Availability, load_availability

ON_FRONT_PAGE = 6
PER_PAGE = 24
MAX_CHARS = 200
MAX_WORDS = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """One agent of a list."""

    agent: Agent
    standing: Availability

    @property
    def address(self) -> str:
        """Where its page is."""
        return page_of(self.agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFilter:
    """What a visitor looks for. `text`: words that must each be in handle, name or tagline."""

    text: str = ""
    online: bool = False
    mine: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether nothing was left out."""
        return self == DirectoryFilter()

    @property
    def query(self) -> str:
        """The query string that asks for it again, a page number may follow."""
        given = {"q": self.text, "online": "1" * self.online, "mine": "1" * self.mine}
        return urlencode({name: value for name, value in given.items() if value})


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What this hub is, who you are, and a few agents you can ask, those online first."""
    offline = Case(When(online(), then=0), default=1, output_field=IntegerField())
    askable = Agent.objects.askable_by(request.user.pk).order_by(offline, "handle_key")
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
    """What the form says; characters no handle, name or tagline needs are dropped."""
    given, text = request.GET, request.GET.get("q", "")[:MAX_CHARS]
    printable = "".join(each if each.isprintable() else " " for each in text)
    return DirectoryFilter(
        text=" ".join(printable.split()[:MAX_WORDS]),
        online=given.get("online") == "1",
        mine=given.get("mine") == "1" and request.user.is_authenticated,
    )


def find(wanted: DirectoryFilter, visitor_id: int | None) -> AgentQuerySet:
    """The agents wanted that the visitor may ask, by handle."""
    found: AgentQuerySet = Agent.objects.askable_by(visitor_id).order_by("handle_key")
    if wanted.mine:
        found = found.filter(owner_id=visitor_id)
    if wanted.online:
        found = found.filter(online())
    for word in wanted.text.split():
        part = word.removeprefix("@")
        found = found.filter(Q(handle__icontains=part) | Q(name__icontains=part) | Q(tagline__icontains=part))
    return found


def entries_of(agents: Iterable[Agent], visitor_id: int | None) -> list[Entry]:
    """Their entries, in the same few queries however many they are."""
    found = list(agents)
    standings = load_availability(found, visitor_id)
    return [Entry(agent, standings[agent.pk]) for agent in found]


def page_of(agent: Agent, name: str = "agent-page") -> str:
    """The address of a page about an agent."""
    return reverse(name, args=agent.handle.split("/", 1))
