"""Search by words: rows that have each of the words, in any order and in any case."""

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

MOST_WORDS = 12
SEARCHED_CHARS = 10_000
SHORTEST_STEM = 4
PUNCTUATION = ".,;:!?\"'()"
_ENDING = re.compile(r"(?:ations?|ings?|ions?|ers?|ed|ly|ies|es?|s|y)$", re.IGNORECASE)

Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


def stem(word: str) -> str:
    """The beginning that the forms of an English word share, roughly; a short word is its own stem.

    `bookings`, `booked` and `books` give `book`.
    """
    shorter = _ENDING.sub("", word)
    return shorter if len(shorter) >= SHORTEST_STEM else word


def match_words(text: str, *columns: str) -> Q:
    """Rows that have each word of a text, or its stem, in one of these columns.

    An empty text matches all. `@` before a word, and punctuation around it, are ignored.
    """
    found = Q()
    for word in text.split()[:MOST_WORDS]:
        part = stem(word.removeprefix("@").strip(PUNCTUATION) or word)
        found &= reduce(or_, [contains(column, part) for column in columns])
    return found


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
