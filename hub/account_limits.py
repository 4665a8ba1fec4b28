"""What one account may have, in one table, and a page for staff that shows how much of it each account uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.paginator import Page, Paginator
from django.db.models import Count, Model, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from a2a_bridge.models import PushConfig
from accounts.models import Credential, User
from accounts.oauth.pages import signed_in
from accounts.quotas import TOKENS
from agents.models import Agent, Connection, Event, File, OpMessage, RemoteServer, Session, TokenUsage
from agents.transcript.storage import MEBIBYTE, USAGE_ROW_BYTES, Bytes
from agnt.models import Venue
from gateway.models import Letter
from hub.bounded_django import UPLOADS_AT_ONCE
from hub.wiring import CARD_LOOKUPS_AT_ONCE
from webhooks.models import Subscription

ACCOUNTS_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class Limit:
    """A number an account may not pass. `setting`: where it is set; fixed without one. 0: there is no limit."""

    name: str
    setting: str = ""
    fixed: int = 0
    unit: str = ""
    where: str = "over all processes"

    @property
    def most(self) -> int:
        """The limit that holds now."""
        return getattr(settings, self.setting) if self.setting else self.fixed


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a limit accounts use, counted in the database. `owner_path` leads from a row to its account."""

    name: str
    limit: Limit
    model: type[Model]
    owner_path: str
    rows: str = "all"
    counted: Any = None

    def by_account(self, accounts: Sequence[int] | None = None) -> QuerySet[Any, Any]:
        """Pairs of account and number, those who use most first."""
        rows = getattr(self.model._default_manager, self.rows)()
        if self.model is Credential:
            rows = rows.filter(kind__in=TOKENS)
        if accounts is not None:
            rows = rows.filter(**{f"{self.owner_path}__in": accounts})
        number = self.counted or Count("pk")
        grouped = rows.order_by().values_list(self.owner_path).annotate(number=number)
        most_first: QuerySet[Any, Any] = grouped.order_by("-number", self.owner_path)
        return most_first


IN_EACH_PROCESS = "in each process"
AGENTS = Limit("agents", "AGENTS_PER_OWNER")
SESSIONS = Limit("sessions", "SESSIONS_PER_OWNER")
SOCKETS = Limit("connected agents", "SOCKETS_PER_OWNER")
LIVE_TOKENS = Limit("live tokens", "TOKENS_PER_OWNER")
STORAGE = Limit("files and transcripts", "STORAGE_PER_OWNER_MB", unit="MiB")
WEBHOOKS = Limit("webhooks", "WEBHOOKS_PER_OWNER")
PUSH_CONFIGS = Limit("push configs", "PUSH_CONFIGS_PER_CALLER")
VENUES = Limit("venues", "VENUES_PER_NETWORK")
LETTERS = Limit("letters", "LETTERS_PER_OWNER")
LETTERS_SIZE = Limit("text of letters", "LETTERS_MB_PER_OWNER", unit="MiB")
LIMITS: Sequence[Limit] = (
    AGENTS,
    SESSIONS,
    SOCKETS,
    LIVE_TOKENS,
    STORAGE,
    WEBHOOKS,
    PUSH_CONFIGS,
    VENUES,
    LETTERS,
    LETTERS_SIZE,
    Limit("asks a minute", "CALLER_RATE_PER_MINUTE"),
    Limit("open streams", "STREAMS_PER_CALLER", where=IN_EACH_PROCESS),
    Limit("operator sockets", "STREAMS_PER_CALLER", where=IN_EACH_PROCESS),
    Limit("downloads under way", "DOWNLOADS_PER_OWNER", where=IN_EACH_PROCESS),
    Limit("uploads under way", fixed=UPLOADS_AT_ONCE, where=IN_EACH_PROCESS),
    Limit("card look-ups under way", fixed=CARD_LOOKUPS_AT_ONCE[0], where=IN_EACH_PROCESS),
)
USES: Mapping[str, Use] = {
    "sessions": Use("sessions", SESSIONS, Session, "owner"),
    "agents": Use("agents", AGENTS, Agent, "owner", rows="kept"),
    "remote": Use("remote agents", AGENTS, RemoteServer, "session__owner"),
    "connected": Use("connected agents", SOCKETS, Connection, "session__owner"),
    "tokens": Use("live tokens", LIVE_TOKENS, Credential, "user", rows="live"),
    "files": Use("files", STORAGE, File, "uploader", rows="live", counted=Sum("size")),
    "said": Use("op-messages", STORAGE, OpMessage, "author", counted=Sum(Bytes("text"))),
    "reported": Use("token usage", STORAGE, TokenUsage, "owner", counted=Count("pk") * USAGE_ROW_BYTES),
    "webhooks": Use("webhooks", WEBHOOKS, Subscription, "owner"),
    "venues": Use("venues", VENUES, Venue, "network__owner"),
    "letters": Use("letters", LETTERS, Letter, "owner"),
    "pushes": Use("push configs", PUSH_CONFIGS, PushConfig, "caller"),
}
TRANSCRIPTS = Use("transcripts", STORAGE, Event, "session__owner", counted=Sum(Bytes("payload")))


@dataclass(frozen=True, slots=True)
class Cell:
    """How much of one limit one account uses."""

    number: int
    is_bytes: bool
    is_at_limit: bool


@never_cache
@gzip_page
@require_safe
def limits(request: HttpRequest) -> HttpResponse:
    """The table and the accounts that use most of one limit; for all but staff there is nothing here."""
    caller = signed_in(request)
    if caller is None or not caller.user.is_staff:
        raise Http404
    by = request.GET.get("by", "")
    by = by if by in USES else "sessions"
    page = Paginator(USES[by].by_account(), ACCOUNTS_A_PAGE).get_page(request.GET.get("page"))
    context = {"limits": LIMITS, "uses": USES, "by": by, "page": page, "accounts": _accounts(page)}
    return render(request, "limits.html", context)


def _accounts(page: Page[Any]) -> list[tuple[str, list[Cell]]]:
    """A row for each account of a page: its login, and a cell for each use; transcripts come last."""
    accounts = [account for account, _ in page.object_list]
    logins = dict(User.objects.filter(pk__in=accounts).values_list("pk", "login"))
    numbers = [dict(use.by_account(accounts)) for use in (*USES.values(), TRANSCRIPTS)]
    return [
        (
            logins.get(account, ""),
            [
                _cell(use, found.get(account) or 0)
                for use, found in zip((*USES.values(), TRANSCRIPTS), numbers, strict=True)
            ],
        )
        for account in accounts
    ]


def _cell(use: Use, number: int) -> Cell:
    is_bytes = use.limit is STORAGE
    most = use.limit.most * (MEBIBYTE if is_bytes else 1)
    return Cell(number, is_bytes, bool(most) and number >= most)
