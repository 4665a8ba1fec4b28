"""The desk pages of a network. This module has the filters, pages and amounts that their lists share."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from accounts.models import User
from agents.core.figures import newest_of
from agnt.service.keys import list_keys
from kit.filters import Filter, Filters, page_of
from kit.ids import read_uuid
from kit.money import CENT, format_usd

MAX_LISTED = 100_000
ON_A_PAGE = 50
SENDER = Filter("from", find=lambda value: Q(sender=value))
VENUE = Filter("venue", find=lambda value: Q(venue__slug__iexact=value) | Q(venue__name__icontains=value))


def read_key_id(given: str) -> str:
    """The id of a key in a query; empty if the text is no id."""
    return str(read_uuid(given) or "")


KEY = Filter("key", read_key_id, lambda value: Q(key__public_id=value))


def show_newest(
    request: HttpRequest, owner: User, rows: QuerySet[Any], column: str, declared: Sequence[Filter]
) -> dict[str, Any]:
    """The context of a page that lists the newest MAX_LISTED rows; `page` has the rows, the newest first."""
    filters = Filters(request, declared)
    newest, cut_at = newest_of(rows, MAX_LISTED, column)
    page = page_of(request, filters.choose(newest).order_by(f"-{column}", "-pk"), ON_A_PAGE)
    return {
        "page": page,
        "filters": filters,
        "keys": list_keys(owner, with_ended=True).order_by("pk"),
        "cut_at": cut_at,
        "most": f"{MAX_LISTED:,}",
        "is_empty": not filters.chosen and not page.paginator.count,
    }


def describe_cents(cents: int) -> str:
    """An amount for people: `$1,250.00`."""
    return format_usd(cents * CENT)
