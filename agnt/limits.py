"""The limits of an account that count rows of `agnt`, and its open asks of venues."""

from accounts.quotas import AccountLimit, CountedRows
from agnt import settings
from agnt.models import Venue

BUSY = "`venue_unreachable`, retryable"

VENUES = AccountLimit(
    "venues",
    (settings, "VENUES_PER_NETWORK"),
    counted=[CountedRows(Venue.objects.all, "network__owner")],
    refusal="the network would have {wanted} venues, and {most} are the most: remove some first",
)
# 20, as a session takes 20 turns of one caller.
OPEN_ASKS_OF_VENUE = AccountLimit("open asks of a venue over HTTP", 20, is_of_process=True, one_more=BUSY)
UNSETTLED_ORDERS = AccountLimit(
    "orders of a customer at one venue that have no certain end, until the venue has cancelled them",
    100,
    one_more="`rate_limited`",
)
OPEN_ASKS_OF_NETWORK = AccountLimit("open asks of all venues over HTTP", 200, is_of_process=True, one_more=BUSY)
