"""`/palette`: what the command palette of every page finds, as JSON: agents, threads, pages and documents."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from django.http import HttpRequest, JsonResponse
from django.urls import NoReverseMatch, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from a2a_bridge.service.threads.listing import find_threads
from accounts.models import User
from agents.pages.directory import MAX_CHARS, address_of, find, online_first, read_search
from hub.docs.search import index, search

MAX_AGENTS = 6
MAX_DOCUMENTS = 6
MAX_PAGES = 6
MAX_THREADS = 5


class Found(NamedTuple):
    """One line of the palette."""

    title: str
    detail: str
    url: str

    @property
    def shown(self) -> dict[str, str]:
        """The line as JSON."""
        return {"title": self.title, "detail": self.detail, "url": self.url}


@dataclass(frozen=True, slots=True)
class PalettePage:
    """A page that has no name of its own in it. `words`: other words that lead to it; `name`: of its address."""

    name: str
    title: str
    words: str = ""
    needs_sign_in: bool = True
    needs_staff: bool = False

    def weight(self, words: Sequence[str]) -> int:
        """A number that is higher the better the page fits these words; 0 if a word is in none of its own."""
        title = self.title.lower()
        own = f"{title} {self.words}".split()
        total = 1
        for word in words:
            begun = [one for one in own if one.startswith(word)]
            if not begun:
                return 0
            total += 2 if begun[0] in title else 1
        return total


PAGES = (
    PalettePage("questions", "My questions", "threads conversations answers history tasks"),
    PalettePage("questions-all", "Every question", "my questions history state"),
    PalettePage("directory", "Agents", "directory find ask", needs_sign_in=False),
    PalettePage("own-files", "Your files", "uploads pictures attachments sent"),
    PalettePage("shares", "Shared answers", "shares links colleagues"),
    PalettePage("desk", "Desk", "my own agents sessions"),
    PalettePage("desk-connect", "Connect an agent", "token program new"),
    PalettePage("desk-publish", "Publish a session", "new agent"),
    PalettePage("desk-remote", "Publish a remote A2A server", "new agent"),
    PalettePage("desk-costs", "Costs", "money usage tokens dollars"),
    PalettePage("desk-failures", "Failures", "errors refused issues reasons"),
    PalettePage("desk-evaluations", "Saved questions", "evaluations tests judge runs quality"),
    PalettePage("desk-alerts", "Alerts", "mail warnings"),
    PalettePage("desk-team", "Team", "gateway proposals"),
    PalettePage("desk-network", "Network", "agnt venues bookings keys"),
    PalettePage("webhooks-page", "Webhooks", "deliveries events"),
    PalettePage("groups", "Groups", "members colleagues team roles"),
    PalettePage("account", "Account", "tokens sessions profile sign-in password"),
    PalettePage("account-erase", "Erase the account", "delete"),
    PalettePage("reference", "Try A2A", "reference developer methods", needs_sign_in=False),
    PalettePage("docs", "Docs", "documentation guides help", needs_sign_in=False),
    PalettePage("api", "API", "rest calls openapi", needs_sign_in=False),
    PalettePage("home", "Home", "start", needs_sign_in=False),
    PalettePage("hub-health", "Health", "processes figures", needs_staff=True),
    PalettePage("hub-limits", "Limits", "quotas accounts", needs_staff=True),
    PalettePage("invitations", "Invitations", "invite people accounts", needs_staff=True),
    PalettePage("admin:index", "Administration", "admin tables audit"),
)


@never_cache
@require_safe
def palette(request: HttpRequest) -> JsonResponse:
    """Groups of lines for the words of `?q=`; without words the pages, and what the visitor used last."""
    typed = read_search(request.GET.get("q", "")[:MAX_CHARS])
    user = request.user if isinstance(request.user, User) else None
    groups = {
        "Agents": _agents(typed, user),
        "Threads": _threads(typed, user),
        "Pages": _pages(typed, user),
        "Documents": _documents(typed),
    }
    shown = {name: [one.shown for one in lines] for name, lines in groups.items()}
    return JsonResponse({"groups": [{"name": name, "items": lines} for name, lines in shown.items() if lines]})


def _agents(typed: str, user: User | None) -> Iterator[Found]:
    user_id = user.pk if user else None
    found = find(user_id, typed) if typed else online_first(find(user_id))
    for agent in found[:MAX_AGENTS]:
        yield Found(agent.name, f"@{agent.handle}", address_of(agent))


def _threads(typed: str, user: User | None) -> Iterator[Found]:
    """The visitor's threads that have the words in titles, questions or answers, the one asked last first."""
    for thread in find_threads(user.pk, q=typed).rows[:MAX_THREADS] if user else ():
        yield from _at("thread", thread.title, f"with @{thread.agent.handle}", thread.public_id)


def _pages(typed: str, user: User | None) -> list[Found]:
    """The pages that the visitor may open: those with the words, or all."""
    words = typed.lower().split()
    weighed = [(one.weight(words), one) for one in PAGES if _may_open(one, user)]
    best = sorted((pair for pair in weighed if pair[0]), key=lambda pair: -pair[0])
    shown = best[: MAX_PAGES if words else None]
    return [line for _, one in shown for line in _at(one.name, one.title)]


def _may_open(page: PalettePage, user: User | None) -> bool:
    if page.needs_staff:
        return user is not None and user.is_staff
    return user is not None or not page.needs_sign_in


def _at(name: str, title: str, detail: str = "", *names: object) -> Iterator[Found]:
    """The line of a page by its URL name; none where the hub serves no such page."""
    with suppress(NoReverseMatch):
        yield Found(title, detail, reverse(name, args=names))


def _documents(typed: str) -> list[Found]:
    """The sections and calls with the words. Without words none; the index is built meanwhile."""
    if not typed:
        index().build_ahead()
        return []
    hits = search(typed.lower().split())[:MAX_DOCUMENTS]
    return [Found(one.entry.heading, f"{one.entry.kind}: {one.entry.page}", one.entry.address) for one in hits]
