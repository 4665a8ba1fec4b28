"""`venue.list`."""

from agnt.errors import Json
from agnt.payloads import VenueList
from agnt.venue_index import VenueIndex


def answer_list(index: VenueIndex, order: VenueList) -> Json:
    """The active venues in their order, the highest rank first."""
    found = index.list_venues(order)
    return {"venues": found.venues, "count": found.count}
