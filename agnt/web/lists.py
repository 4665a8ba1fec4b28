"""What the lists of a network have in common: words of a query, the newest rows, and amounts."""

from datetime import datetime
from typing import Any, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from kit.money import CENT, format_usd

MOST_LISTED = 100_000
ON_A_PAGE = 50
MAX_WORDS_CHARS = 128

Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


def read_words(request: HttpRequest, name: str) -> str:
    """What was typed into a filter; empty for what no row can have."""
    words = " ".join(request.GET.get(name, "").split())
    return words if words.isprintable() and len(words) <= MAX_WORDS_CHARS else ""


def newest_of(rows: Rows, column: str) -> tuple[Rows, datetime | None]:
    """The newest MOST_LISTED of some rows, and, where there are more, since when these are."""
    times = rows.order_by(f"-{column}").values_list(column, flat=True)
    oldest: datetime | None = times[MOST_LISTED : MOST_LISTED + 1].first()
    return (rows, None) if oldest is None else (rows.filter(**{f"{column}__gt": oldest}), oldest)


def page_of(request: HttpRequest, rows: QuerySet[Any, Any]) -> Page:  # type: ignore[type-arg]
    """The part of a list that `?page=` asks for."""
    return Paginator(rows, ON_A_PAGE).get_page(request.GET.get("page"))


def describe_cents(cents: int) -> str:
    """An amount for people: `$1,250.00`."""
    return format_usd(cents * CENT)
