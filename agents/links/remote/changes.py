"""What differs between two cards, member by member."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST_SHOWN = 100
MAX_VALUE_CHARS = 400
MAX_PATH_CHARS = 200
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
ABSENT = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One member that differs. `before`, `after`: JSON texts, cut when long; None where it is absent."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The first members that differ, and how many there are besides."""

    shown: list[Change]
    more: int


def find_changes(before: Any, after: Any) -> Changes:
    """Compare two JSON values; the items of two lists are matched by `id` where all have one, else by place."""
    shown: list[Change] = []
    more = 0
    for path, one, other in _differing("", before, after):
        if len(shown) < MOST_SHOWN:
            shown.append(Change(_cut(path, MAX_PATH_CHARS) or "(all)", _text(one), _text(other)))
        else:
            more += 1
    return Changes(shown, more)


def _differing(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            inner = f"{path}.{name}" if PLAIN.fullmatch(name) else f"{path}[{_json(name)}]"
            yield from _differing(inner.lstrip("."), before.get(name, ABSENT), after.get(name, ABSENT))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _differing_items(path, before, after)
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield path, before, after


def _differing_items(path: str, before: list[Any], after: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    mine, theirs = _by_id(before), _by_id(after)
    if mine is None or theirs is None:
        mine, theirs = dict(enumerate(before)), dict(enumerate(after))
    elif list(mine) != list(theirs) and set(mine) == set(theirs):
        yield f"{path} (order)", list(mine), list(theirs)
    for key in {**mine, **theirs}:
        yield from _differing(f"{path}[{_json(key)}]", mine.get(key, ABSENT), theirs.get(key, ABSENT))


def _by_id(items: list[Any]) -> dict[Any, Any] | None:
    """Items by their ids; None when one has none, or shares it."""
    found = {one["id"]: one for one in items if isinstance(one, dict) and isinstance(one.get("id"), str)}
    return found if items and len(found) == len(items) else None


def _text(value: Any) -> str | None:
    return None if value is ABSENT else _cut(_json(value), MAX_VALUE_CHARS)


def _json(value: Any) -> str:
    """JSON to be read by a person: what is not printable, such as a change of direction, is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
