"""Filters of the lists on pages: declared once, read from the address, and applied to the rows."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Q, QuerySet
from django.http import HttpRequest

MAX_WORDS_CHARS = 128
Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


def read_words(given: str, most: int = MAX_WORDS_CHARS) -> str:
    """Words that a visitor typed into a filter; empty for what no row can have."""
    words = " ".join(given.split())
    return words if words.isprintable() and len(words) <= most else ""


def one_of(values: Collection[str]) -> Callable[[str], str]:
    """Reads one of some values; empty for another."""
    return lambda given: given if given in values else ""


@dataclass(frozen=True, slots=True)
class Filter:
    """A field by which a visitor filters a list.

    Args:
        name: the parameter of the address.
        read: the value in what was typed, empty for what no row can have.
        find: the rows with a value.
    """

    name: str
    read: Callable[[str], str] = read_words
    find: Callable[[str], Q] = lambda value: Q()


class Filters:
    """The rows that a list shows. `chosen`: the value of each set filter; the query that shows the same list."""

    def __init__(self, request: HttpRequest, declared: Sequence[Filter]) -> None:
        self._declared = declared
        read = {one.name: one.read(request.GET.get(one.name, "")) for one in declared}
        self.chosen = {name: value for name, value in read.items() if value}

    def choose(self, rows: Rows) -> Rows:
        """The rows that the list shows."""
        for one in self._declared:
            if value := self.chosen.get(one.name):
                rows = rows.filter(one.find(value))
        return rows
