"""`booking.search`."""

from datetime import datetime

from agnt.errors import Json
from agnt.payloads import Search
from agnt.venue_index import VenueIndex
from kit.clock import iso

REFERRAL_FEE_PCT = 7


def answer_search(index: VenueIndex, order: Search, now: datetime) -> Json:
    """The venues that match, and until when this answer holds; it reserves nothing."""
    found = index.search(order, now)
    assert found.expires_at is not None  # noqa: S101  for the type checker: searches have one
    return {
        "results": found.venues,
        "count": found.count,
        "fee_pct": REFERRAL_FEE_PCT,
        "expires_at": iso(found.expires_at),
    }
