"""Lists and searches of venues: the active venues of one network, found by the database."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct

from agnt.models import Venue
from agnt.models.venue import VENUE_WORDS, VenueQuerySet
from agnt.wire.payloads import AgntListOrder, AgntSearchOrder
from agnt.wire.shapes import AgntVenue
from kit.full_text import searches
from kit.newest import NewestEntries
from kit.rows import fields_of, show
from kit.search import contains

FOUND_FOR = timedelta(minutes=5)
MAX_KEPT = 1_000  # answers that a process keeps, each with at most 100 venues of about 400 bytes
_COLUMNS = tuple(field.path[0] for field in fields_of(AgntVenue).values())
_encode = msgspec.json.Encoder().encode


class Found(Struct, frozen=True):
    """Venues that were found, as JSON, and until when the result of a search holds."""

    venues: msgspec.Raw
    count: int
    expires_at: datetime


def describe_venue(venue: Any) -> AgntVenue:
    """A venue as the wire shows it. `venue`: a `Venue`, or a row with its fields."""
    fee: Decimal = venue.referral_fee_pct
    return show(AgntVenue, venue, referral_fee_pct=int(fee) if fee == fee.to_integral_value() else float(fee))


class VenueSearch:
    """Lists and searches of this process, kept for five minutes or until a venue of the network changes.

    `version`: `Network.venues_version`, read before the call; each change of a venue makes another. The newest
    `MAX_KEPT` answers are kept.
    """

    def __init__(self) -> None:
        self._kept: NewestEntries[tuple[int, int, AgntSearchOrder | AgntListOrder], Found] = NewestEntries(
            MAX_KEPT
        )
        self._counts: NewestEntries[tuple[int, int], int] = NewestEntries(MAX_KEPT)

    def count(self, network_id: int, version: int) -> int:
        """The number of active venues."""
        found = self._counts.get((network_id, version))
        if found is None:
            found = self._counts[network_id, version] = _active(network_id).count()
        return found

    def find(self, network_id: int, version: int, order: AgntSearchOrder | AgntListOrder, now: datetime) -> Found:
        """The venues of a list, or of a search. The same search, within five minutes, has the same end."""
        key = (network_id, version, order)
        found = self._kept.get(key)
        if found is None or found.expires_at <= now:
            rows = (
                search_venues(network_id, order)
                if isinstance(order, AgntSearchOrder)
                else list_venues(network_id, order)
            )
            shown = [_encode(describe_venue(row)) for row in rows]
            venues = msgspec.Raw(b"[" + b",".join(shown) + b"]")
            found = self._kept[key] = Found(venues, len(shown), now + FOUND_FOR)
        return found


def list_venues(network_id: int, order: AgntListOrder) -> Iterable[Any]:
    """The venues of a category, in areas or cities with a part in their name, by rank."""
    found = _active(network_id)
    if order.category:
        found = found.filter(category=order.category)
    if order.location:
        found = found.filter(contains("area", order.location) | contains("city", order.location))
    return found.in_order().values_list(*_COLUMNS, named=True)[: order.limit]


def search_venues(network_id: int, order: AgntSearchOrder) -> Iterable[Any]:
    """The venues that a search finds, by relevance, then by rank."""
    by_rank = VenueQuerySet.ORDER
    for found in searches(_active(network_id), VENUE_WORDS, order.query, *by_rank, places=order.location):
        if rows := list(found.values_list(*_COLUMNS, named=True)[: order.limit]):
            return rows
    return []


def _active(network_id: int) -> VenueQuerySet:
    return Venue.objects.filter(network_id=network_id, is_active=True)
