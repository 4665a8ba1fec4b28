"""`/desk/network/log`: the envelopes that came to a network, who sent them and how they ended."""

from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_date

from accounts.models import User
from agents.core.figures import moments_of, read_zone
from agents.web.desk import owner_page
from agnt.models import Interaction
from agnt.service.figures import DUPLICATE, OK
from agnt.web.lists import KEY, SENDER, VENUE, show_newest
from clawbridge.agnt.errors import ErrorCode
from clawbridge.agnt.fields import INTENTS, NETWORK
from kit.filters import Filter, one_of

ERRORS = "errors"
STATUSES = (OK, DUPLICATE, ERRORS, *sorted(ErrorCode))
WORDS = {  # of the metadata
    "user_agent": "{}",
    "context_bytes": "{} bytes of context",
    "dropped": "dropped {}",
    "origin": "first sent by {}",
    "via": "via {}",
    "reason": "refused: {}",
    "rule": "the venue broke the rule: {}",
    "venue_said": "the venue said: {}",
}
FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(9000, 1, 1)  # a day beside these has no moments in every zone


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


@owner_page
def log(request: HttpRequest, owner: User) -> HttpResponse:
    """The page, newest first, of the newest MOST_LISTED envelopes."""
    tz = read_zone(request.GET)
    declared = (*FILTERS, Filter("day", _read_day, lambda value: _find_day(value, tz)))
    loaded = Interaction.objects.select_related("key__credential", "venue", "booking")
    shown = show_newest(request, owner, loaded.filter(network__owner=owner), "at", declared)
    context = {
        **shown,
        "rows": [LogRow(row) for row in shown["page"]],
        "tz": tz,
        "statuses": STATUSES,
        "intents": sorted(INTENTS),
        "network": NETWORK,
        "kept": urlencode({**shown["filters"].chosen, "tz": tz}),
    }
    return render(request, "agnt/log.html", context)


def _find_status(value: str) -> Q:
    return ~Q(status__in=[OK, DUPLICATE]) if value == ERRORS else Q(status=value)


def _read_day(given: str) -> str:
    try:
        day = parse_date(given)
    except ValueError:
        return ""
    return day.isoformat() if day and FIRST_DAY <= day <= LAST_DAY else ""


def _find_day(value: str, tz: str) -> Q:
    """The envelopes of a day in a zone."""
    begins, ends = moments_of(date.fromisoformat(value), tz)
    return Q(at__gte=begins, at__lt=ends)


def _in_words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


FILTERS = (
    Filter("status", one_of(STATUSES), _find_status),
    Filter("intent", one_of(INTENTS), lambda value: Q(intent=value)),
    KEY,
    SENDER,
    VENUE,
)
