"""The limits of an account that are counted in memory: requests, sockets, and the rate of asks."""

from django.conf import settings

from accounts.quotas import AccountLimit

RETRY_LATER = "429 `rate_limited` with `Retry-After`"

ASKS = AccountLimit("asks a minute", (settings, "CALLER_RATE_PER_MINUTE"), one_more="refused as `rate_limited`")
STREAMS = AccountLimit(
    "open streams",
    (settings, "STREAMS_PER_CALLER"),
    is_of_process=True,
    one_more="429; of sockets: the socket is refused",
)
DOWNLOADS = AccountLimit(
    "downloads under way", (settings, "DOWNLOADS_PER_OWNER"), is_of_process=True, one_more=RETRY_LATER
)
UPLOADS = AccountLimit("uploads under way", 4, is_of_process=True, one_more=RETRY_LATER)
CARD_LOOKUPS = AccountLimit(
    "card look-ups under way",
    4,
    is_of_process=True,
    counts="fetching the card of a remote A2A server",
    one_more=RETRY_LATER,
)
REQUESTS = AccountLimit(
    "requests under way",
    100,
    is_of_process=True,
    counts="pages and calls of the REST API, those that wait for their turn among them",
    one_more=RETRY_LATER,
)
