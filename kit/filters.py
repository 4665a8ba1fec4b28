"""The filters of lists on pages, declared once and read from the query string; and paging of these lists."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest

MAX_WORDS_CHARS = 128
Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


def read_words(given: str, most: int = MAX_WORDS_CHARS) -> str:
    """The words that a visitor typed into a filter; empty if no row can contain them."""
    words = " ".join(given.split())
    return words if words.isprintable() and len(words) <= most else ""


def one_of(values: Collection[str]) -> Callable[[str], str]:
    """Make a `Filter.read` that accepts only these values, and returns an empty text for any other."""
    return lambda given: given if given in values else ""


@dataclass(frozen=True, slots=True)
class Filter:
    """A field by which a visitor filters a list.

    Args:
        name: the parameter of the address.
        read: returns the value of the typed text, empty if no row can have it.
        find: the rows with a value.
    """

    name: str
    read: Callable[[str], str] = read_words
    find: Callable[[str], Q] = lambda value: Q()


class Filters:
    """The filtered rows of a list. `chosen`: the value of each filter that is set; `query`: the query string."""

    def __init__(self, request: HttpRequest, declared: Sequence[Filter]) -> None:
        self._declared = declared
        read = {one.name: one.read(request.GET.get(one.name, "")) for one in declared}
        self.chosen = {name: value for name, value in read.items() if value}

    @property
    def query(self) -> str:
        """The query string that shows the same list."""
        return urlencode(self.chosen)

    def choose(self, rows: Rows) -> Rows:
        """The rows that the list shows."""
        for one in self._declared:
            if value := self.chosen.get(one.name):
                rows = rows.filter(one.find(value))
        return rows


def page_of(request: HttpRequest, rows: QuerySet[Any, Any], size: int, parameter: str = "page") -> Page[Any]:
    """The page of a list that a query parameter names; the first page if the parameter names none."""
    return Paginator(rows, size).get_page(request.GET.get(parameter))
