"""The active venues of networks in memory: what lists and searches are answered from.

An index is never changed. A process reads one anew when the version of the network's venues is another.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from agnt.models import Network, Venue
from agnt.service.venues.texts import VenueTexts, make_bitmap, read_bitmap
from agnt.wire.errors import Json
from agnt.wire.payloads import Search, VenueList
from kit.async_db import db_call

FOUND_FOR = timedelta(minutes=5)
MOST_EXPIRIES = 10_000  # of a process, at most 3 KB each
MOST_WORDS = 16  # of a query, the longest; the rest are ignored, as each costs a search in all terms
MOST_VENUES = 100_000  # of all indexes of a process, about 2 KB each and their texts; an index counts as ten
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
ALL_VENUES = -1  # a bitmap with all bits
_encode = msgspec.json.Encoder().encode


class Found(Struct, frozen=True):
    """Venues that were found, as JSON."""

    venues: msgspec.Raw
    count: int


class SearchResult(Found, frozen=True):
    """The venues that a search found, and when the result expires."""

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


class SearchExpiries:
    """When search results expire: the same search, repeated within five minutes, expires when the first does.

    One table for all networks; when it has `MOST_EXPIRIES` entries, it is cleared.
    """

    def __init__(self) -> None:
        self._expiries: dict[tuple[int, int, Search], datetime] = {}

    def get_or_set(self, network_id: int, version: int, order: Search, now: datetime) -> datetime:
        """When a search of this version of a network's venues expires; each change of a venue makes a version."""
        key = (network_id, version, order)
        expires_at = self._expiries.get(key)
        if expires_at is None or expires_at <= now:
            if len(self._expiries) >= MOST_EXPIRIES:
                self._expiries.clear()
            expires_at = self._expiries[key] = now + FOUND_FOR
        return expires_at


class VenueIndex:
    """The active venues of one network, in the order in which they are listed.

    `version`: `Network.venues_version` when it was read, or an earlier one. `used_at`: of the monotonic clock.
    """

    def __init__(self, network_id: int, version: int, venues: Sequence[Any], expiries: SearchExpiries) -> None:
        self.network_id = network_id
        self.version = version
        self.count = len(venues)
        self.used_at = time.monotonic()
        self._expiries = expiries
        self._shown = [_encode(describe_venue(venue)) for venue in venues]
        numbers_by_category: dict[str, list[int]] = defaultdict(list)
        for number, venue in enumerate(venues):
            numbers_by_category[venue.category].append(number)
        self._bitmaps_by_category = {
            category: make_bitmap(numbers) for category, numbers in numbers_by_category.items()
        }
        self._places = VenueTexts(((venue.area, venue.city) for venue in venues), _whole)
        self._words = VenueTexts(((venue.name, venue.description, venue.category) for venue in venues), str.split)

    def list_venues(self, order: VenueList) -> Found:
        """The venues of a list."""
        return self._show(self._find("", order.location, order.category, order.limit))

    def search(self, order: Search, now: datetime) -> SearchResult:
        """The venues of a search."""
        found = self._show(self._find(order.query, order.location, "", order.limit))
        expires_at = self._expiries.get_or_set(self.network_id, self.version, order, now)
        return SearchResult(found.venues, found.count, expires_at)

    def _find(self, query: str, location: str, category: str, limit: int) -> Iterator[int]:
        """The first venues that have each of the words, the location, and the category."""
        parts = [(self._words, word) for word in _read_words(query)]
        if location:
            parts.append((self._places, location.casefold()))
        bitmap = self._bitmaps_by_category.get(category, 0) if category else ALL_VENUES
        looks = []
        for texts, part in parts:
            found = texts.find_bitmap(part)
            if found is None:
                looks.append(partial(texts.has, part))
            else:
                bitmap &= found
        numbers = iter(range(self.count)) if bitmap == ALL_VENUES else read_bitmap(bitmap)
        for has_part in looks:
            numbers = filter(has_part, numbers)
        return islice(numbers, limit)

    def _show(self, numbers: Iterable[int]) -> Found:
        shown = [self._shown[number] for number in numbers]
        return Found(msgspec.Raw(b"[" + b",".join(shown) + b"]"), len(shown))


class VenueIndexes:
    """The indexes that this process needs. The event loop loads them, the thread of the intake reads them."""

    def __init__(self) -> None:
        self._indexes: dict[int, VenueIndex] = {}
        self._loading: dict[int, asyncio.Task[VenueIndex]] = {}
        self._expiries = SearchExpiries()

    def find(self, network_id: int, version: int) -> VenueIndex | None:
        """The index of a network, if it is that of this version, or of a later one."""
        index = self._indexes.get(network_id)
        if index is None or index.version < version:
            return None
        index.used_at = time.monotonic()
        return index

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
            index = await db_call(load_index)(network_id, self._expiries)
            index.used_at = time.monotonic()  # later than those that were used while it was built
            self._indexes[network_id] = index
            while len(self._indexes) > 1 and sum(one.count + 10 for one in self._indexes.values()) > MOST_VENUES:
                del self._indexes[min(self._indexes, key=lambda one: self._indexes[one].used_at)]
            return index
        finally:
            del self._loading[network_id]


def load_index(network_id: int, expiries: SearchExpiries) -> VenueIndex:
    """Read the active venues of a network; its version first, as rows may change meanwhile."""
    version = Network.objects.filter(pk=network_id).values_list("venues_version", flat=True).first() or 0
    active = Venue.objects.filter(network_id=network_id, is_active=True)
    venues = list(active.in_order().values_list(*_FIELDS, named=True))
    return VenueIndex(network_id, version, venues, expiries)


def _read_words(query: str) -> list[str]:
    """The words of a query that are looked for, each once, in folded case."""
    return sorted(set(query.casefold().split()), key=lambda word: (-len(word), word))[:MOST_WORDS]


def _whole(field: str) -> tuple[str]:
    return (field,)
