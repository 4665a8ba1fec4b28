"""The limits of an account that count rows of `agnt`."""

from accounts.quotas import AccountLimit, CountedRows
from agnt import settings
from agnt.models import Venue

VENUES = AccountLimit(
    name="venues",
    settings=settings,
    setting="VENUES_PER_NETWORK",
    counted=[CountedRows("venues", Venue.objects.all, "network__owner")],
    refusal="the network would have {wanted} venues, and {most} are the most: remove some first",
    counts="of its AGNT network, inactive ones too; 10,000 rows and 10 MiB in a [file](rest.md#files-of-venues)",
)
OPEN_ASKS_OF_VENUE = AccountLimit(
    name="open asks of a venue over HTTP",
    fixed=20,  # as a session takes 20 turns of one caller
    is_of_process=True,
    one_more="`venue_unreachable`, retryable",
)
OPEN_ASKS_OF_NETWORK = AccountLimit(
    name="open asks of all venues over HTTP",
    fixed=200,
    is_of_process=True,
    one_more="`venue_unreachable`, retryable",
)
