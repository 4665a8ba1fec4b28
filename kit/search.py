"""Search by parts of a text, without an index (docs/adr/0103). With one: `kit.full_text`."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

SEARCHED_CHARS = 10_000

Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


def filter_by_words(found: Rows, column: str, words: Sequence[str]) -> Rows:
    """The rows whose column has each of the words in its first SEARCHED_CHARS characters."""
    if not words:
        return found
    found = found.alias(searched=Left(column, SEARCHED_CHARS))
    for word in words:
        found = found.filter(contains("searched", word))
    return found


def contains(column: str, part: str) -> Q:
    """Rows whose column has a part in any case. SQLite, and PostgreSQL in some locales, know only ASCII's."""
    spellings = {part} if part.isascii() else {part, part.lower(), part.upper(), part.capitalize()}
    return reduce(or_, [Q(**{f"{column}__icontains": one}) for one in sorted(spellings)])
