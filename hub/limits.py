"""The limits of an account that are counted in memory: requests, sockets, and the rate of asks."""

from django.conf import settings

from accounts.quotas import AccountLimit
from kit.asgi import LARGE_BODIES_A_SECOND

RETRY_LATER = "429 `rate_limited` with `Retry-After`"

ASKS = AccountLimit("asks a minute", (settings, "CALLER_RATE_PER_MINUTE"), one_more="refused as `rate_limited`")
PROCESSOR_SHARE = AccountLimit(
    "percent of a processor",
    (settings, "ACCOUNT_SHARE_PERCENT"),
    is_of_process=True,
    one_more="none: further requests wait",
)
SOCKET_BYTES = AccountLimit(
    "bytes of frames a second",
    (settings, "SOCKET_BYTES_PER_SECOND"),
    is_of_process=True,
    one_more="none: further frames wait",
)
LARGE_BODIES = AccountLimit(
    "bytes of large bodies a second",
    LARGE_BODIES_A_SECOND,
    is_of_process=True,
    counts="bodies of more than 64 KiB of calls that wait for agents, such as A2A, MCP and chat completions",
    one_more="none: further ones wait",
)
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
    counts="pages, calls of the REST API and checks of formats, those that wait for their turn among them",
    one_more=RETRY_LATER,
)
