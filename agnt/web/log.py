"""`/desk/network/log`: the envelopes that came to a network, who sent them and how they ended."""

from dataclasses import dataclass
from datetime import date
from typing import Any, Self
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_date
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from accounts.models import User
from agents.web.desk import require_owner
from agents.web.desk.figures import moments_of, read_zone
from agnt.errors import ErrorCode
from agnt.metrics import DUPLICATE, OK
from agnt.models import ApiKey, Interaction
from agnt.web.keys import find_key_id
from agnt.web.lists import MOST_LISTED, newest_of, page_of, read_words
from agnt.wire import INTENTS, NETWORK

ERRORS = "errors"
STATUSES = (OK, DUPLICATE, ERRORS, *sorted(ErrorCode))
WORDS = {  # of the metadata
    "user_agent": "{}",
    "context_bytes": "{} bytes of context",
    "dropped": "dropped {}",
    "origin": "first sent by {}",
    "via": "via {}",
}
FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(9000, 1, 1)  # a day beside these has no moments in every zone


@dataclass(frozen=True, slots=True)
class Filters:
    """What the list shows; empty for all. `key`: the id of a key, `day`: a day in the zone `tz`."""

    status: str
    intent: str
    key: str
    sender: str
    venue: str
    day: date | None
    tz: str

    @classmethod
    def read(cls, request: HttpRequest) -> Self:
        """As they were typed; what cannot be one is left out."""
        status, intent = request.GET.get("status", ""), request.GET.get("intent", "")
        return cls(
            status if status in STATUSES else "",
            intent if intent in INTENTS else "",
            find_key_id(request.GET.get("key", "")),
            read_words(request, "from"),
            read_words(request, "venue"),
            _read_day(request.GET.get("day", "")),
            read_zone(request.GET),
        )

    @property
    def chosen(self) -> dict[str, str]:
        """The query that shows the same list, without the zone."""
        named = {"status": self.status, "intent": self.intent, "key": self.key, "from": self.sender}
        named |= {"venue": self.venue, "day": self.day.isoformat() if self.day else ""}
        return {name: value for name, value in named.items() if value}

    def choose(self, rows: QuerySet[Interaction]) -> QuerySet[Interaction]:
        """The rows that it shows."""
        if self.status == ERRORS:
            rows = rows.exclude(status__in=[OK, DUPLICATE])
        elif self.status:
            rows = rows.filter(status=self.status)
        if self.intent:
            rows = rows.filter(intent=self.intent)
        if self.key:
            rows = rows.filter(key__public_id=self.key)
        if self.sender:
            rows = rows.filter(sender=self.sender)
        if self.venue:
            rows = rows.filter(Q(venue__slug__iexact=self.venue) | Q(venue__name__icontains=self.venue))
        if self.day:
            begins, ends = moments_of(self.day, self.tz)
            rows = rows.filter(at__gte=begins, at__lt=ends)
        return rows


@dataclass(frozen=True, slots=True)
class LogRow:
    """One envelope. `mark`: the class of the badge of its status; `about`: what else is known of its sender."""

    row: Interaction

    @property
    def mark(self) -> str:
        """`good` for an answer, `bad` for an error."""
        return {OK: "good", DUPLICATE: ""}.get(self.row.status, "bad")

    @property
    def about(self) -> str:
        """The metadata in a line."""
        metadata: dict[str, Any] = self.row.metadata
        named = {name: WORDS.get(name, "{}") for name in metadata}
        return ", ".join(named[name].format(_in_words(value)) for name, value in metadata.items() if value)


@never_cache
@gzip_page
@require_safe
@require_owner
def log(request: HttpRequest, owner: User) -> HttpResponse:
    """The page, newest first, of the newest MOST_LISTED envelopes."""
    filters = Filters.read(request)
    own = Interaction.objects.filter(network__owner=owner)
    newest, cut_at = newest_of(own, "at")
    chosen = filters.choose(newest).select_related("key__credential", "venue", "booking")
    page = page_of(request, chosen.order_by("-at", "-pk"))
    context = {
        "rows": [LogRow(row) for row in page],
        "page": page,
        "filters": filters,
        "statuses": STATUSES,
        "intents": sorted(INTENTS),
        "network": NETWORK,
        "keys": ApiKey.objects.filter(network__owner=owner).select_related("credential").order_by("pk"),
        "cut_at": cut_at,
        "most": f"{MOST_LISTED:,}",
        "kept": urlencode({**filters.chosen, "tz": filters.tz}),
        "is_empty": not filters.chosen and not page.paginator.count,
    }
    return render(request, "agnt/log.html", context)


def _read_day(given: str) -> date | None:
    try:
        day = parse_date(given)
    except ValueError:
        return None
    return day if day and FIRST_DAY <= day <= LAST_DAY else None


def _in_words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
