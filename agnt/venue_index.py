"""The active venues of networks in memory: what lists and searches are answered from.

An index is never changed. A process reads one anew when the version of the network's venues is another.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any

import msgspec
from msgspec import Struct

from agnt.errors import Json
from agnt.models import Network, Venue
from agnt.payloads import Search, VenueList
from kit.async_db import db_call

FOUND_FOR = timedelta(minutes=5)
ANSWERS_KEPT = 256  # of each kind, of an index; each may hold 100 venues
CONDITIONS_KEPT = 256  # of an index; each takes a byte for each venue
MOST_WORDS = 16  # of a query, the longest; the rest are ignored, as each costs a search in all texts
MOST_VENUES = 100_000  # of all indexes of a process, about 1.5 KB each
_FIELDS = (
    "public_id",
    "slug",
    "agent_name",
    "name",
    "category",
    "area",
    "city",
    "tags",
    "price_range",
    "referral_fee_pct",
    "description",
)
_encode = msgspec.json.Encoder().encode
_FREQUENT = 250  # holders of a text; beyond, it is quicker to look at each venue than to jump from one to the next


class Found(Struct, frozen=True):
    """Venues that were found, as JSON."""

    venues: msgspec.Raw
    count: int


class Searched(Found, frozen=True):
    """What a search found; it is kept until `expires_at`."""

    expires_at: datetime


def describe_venue(venue: Any) -> Json:
    """A venue as the wire shows it. `venue`: a `Venue`, or a row with its fields."""
    fee: Decimal = venue.referral_fee_pct
    return {
        "venue_id": str(venue.public_id),
        "slug": venue.slug,
        "agent_id": venue.agent_name,
        "name": venue.name,
        "category": venue.category,
        "area": venue.area,
        "city": venue.city,
        "tags": venue.tags,
        "price_range": venue.price_range,
        "referral_fee_pct": int(fee) if fee == fee.to_integral_value() else float(fee),
    }


class _Texts:
    """One text of each venue, all in one piece: a search in it is one search in memory, however many there are."""

    def __init__(self, texts: Sequence[tuple[str, ...]]) -> None:
        parts, at = [], 0
        self._starts: list[int] = []
        for fields in texts:
            self._starts.append(at)
            part = b"".join(
                [_fold(field) + b"\0" for field in fields]
            )  # no search has NUL: none goes beyond a field
            parts.append(part)
            at += len(part)
        self._all = b"".join(parts)

    def holders(self, needle: bytes) -> Iterator[int]:
        """The numbers of the venues whose text has the needle, ascending."""
        at = self._all.find(needle)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            yield number
            if number + 1 == len(self._starts):
                return
            at = self._all.find(needle, self._starts[number + 1])

    def mark_holders(self, needle: bytes) -> int:
        """The venues whose text has the needle, as an integer with a byte for each venue."""
        marks = bytearray(len(self._starts))
        for nth, number in enumerate(self.holders(needle)):
            if nth == _FREQUENT:
                marks[number:] = self._look_at_each(needle, number)
                break
            marks[number] = 1
        return int.from_bytes(marks, "big")

    def _look_at_each(self, needle: bytes, first: int) -> bytes:
        """Whether the text of each venue, from that number on, has the needle: a byte for each."""
        ends = [*self._starts[first + 1 :], len(self._all)]
        return bytes(
            [needle in self._all[start:end] for start, end in zip(self._starts[first:], ends, strict=True)]
        )


class VenueIndex:
    """The active venues of one network, in the order in which they are listed. One thread uses it.

    `version`: `Network.venues_version` when it was read, or an earlier one.
    """

    def __init__(self, version: int, venues: Sequence[Any]) -> None:
        self.version = version
        self.count = len(venues)
        self._shown = [_encode(describe_venue(venue)) for venue in venues]
        self._categories = [venue.category for venue in venues]
        self._places = _Texts([(venue.area, venue.city) for venue in venues])
        self._words = _Texts([(venue.name, venue.description, venue.category) for venue in venues])
        self._lists: dict[VenueList, Found] = {}
        self._searches: dict[Search, Searched] = {}
        self._marked: dict[tuple[_Texts | None, str], int] = {}

    def list_venues(self, order: VenueList) -> Found:
        """The venues of a list."""
        known = self._lists.get(order)
        if known is None:
            known = self._show(self._find("", order.location, order.category, order.limit))
            _make_room(self._lists)
            self._lists[order] = known
        return known

    def search(self, order: Search, now: datetime) -> Searched:
        """The venues of a search; the same for up to five minutes, and then found anew."""
        known = self._searches.get(order)
        if known is None or known.expires_at <= now:
            found = self._show(self._find(order.query, order.location, "", order.limit))
            known = Searched(found.venues, found.count, now + FOUND_FOR)
            _make_room(self._searches)
            self._searches[order] = known
        return known

    def _find(self, query: str, location: str, category: str, limit: int) -> list[int]:
        """The first venues that have each of the words, the location, and the category."""
        conditions: list[tuple[_Texts | None, str]] = [(self._words, word) for word in _read_words(query)]
        if location:
            conditions.append((self._places, location))
        if category:
            conditions.append((None, category))
        if not conditions:
            return list(range(min(limit, self.count)))
        marked = reduce(and_, (self._mark(texts, wanted) for texts, wanted in conditions))
        marks = marked.to_bytes(self.count, "big")
        found: list[int] = []
        at = marks.find(1)
        while at >= 0 and len(found) < limit:
            found.append(at)
            at = marks.find(1, at + 1)
        return found

    def _mark(self, texts: _Texts | None, wanted: str) -> int:
        """The venues that meet one condition; kept, as words come again in other searches. None: the category."""
        known = self._marked.get((texts, wanted))
        if known is not None:
            return known
        if texts is None:
            marked = int.from_bytes(bytes(one == wanted for one in self._categories), "big")
        else:
            marked = texts.mark_holders(_fold(wanted))
        if len(self._marked) >= CONDITIONS_KEPT:
            self._marked.clear()
        self._marked[texts, wanted] = marked
        return marked

    def _show(self, numbers: Sequence[int]) -> Found:
        shown = b",".join([self._shown[number] for number in numbers])
        return Found(msgspec.Raw(b"[" + shown + b"]"), len(numbers))


class VenueIndexes:
    """The indexes that this process needs. The event loop loads them, the thread of the intake reads them."""

    def __init__(self) -> None:
        self._indexes: dict[int, VenueIndex] = {}
        self._loading: dict[int, asyncio.Task[VenueIndex]] = {}

    def find(self, network_id: int, version: int) -> VenueIndex | None:
        """The index of a network, if it is that of this version, or of a later one."""
        index = self._indexes.get(network_id)
        return index if index is not None and index.version >= version else None

    async def load(self, network_id: int, version: int) -> None:
        """Have an index of this version, or of a later one; requests at the same time share the work."""
        while self.find(network_id, version) is None:
            task = self._loading.get(network_id)
            if task is None:
                task = asyncio.get_running_loop().create_task(self._load(network_id), name="venues")
                self._loading[network_id] = task
            await asyncio.shield(task)

    async def _load(self, network_id: int) -> VenueIndex:
        try:
            index = await db_call(load_index)(network_id)
            self._indexes.pop(network_id, None)
            self._indexes[network_id] = index
            while len(self._indexes) > 1 and sum(one.count for one in self._indexes.values()) > MOST_VENUES:
                del self._indexes[next(iter(self._indexes))]  # the one that was read the longest time ago
            return index
        finally:
            del self._loading[network_id]


def _make_room(answers: dict[Any, Any]) -> None:
    if len(answers) >= ANSWERS_KEPT:
        answers.clear()


def load_index(network_id: int) -> VenueIndex:
    """Read the active venues of a network; its version first, as rows may change meanwhile."""
    version = Network.objects.filter(pk=network_id).values_list("venues_version", flat=True).first() or 0
    active = Venue.objects.filter(network_id=network_id, is_active=True)
    return VenueIndex(version, list(active.in_order().values_list(*_FIELDS, named=True)))


def _read_words(query: str) -> list[str]:
    """The words of a query that are looked for, each once."""
    return sorted(set(query.casefold().split()), key=lambda word: (-len(word), word))[:MOST_WORDS]


def _fold(text: str) -> bytes:
    """A text without the case of its letters."""
    return text.casefold().encode()
