"""The limits of an account that count no rows: requests and sockets in memory, and the rate of asks."""

from django.conf import settings

from accounts.quotas import AccountLimit
from agents.core.ask_queue import MAX_QUEUED
from agents.core.ports import MESSAGES_A_SECOND, MESSAGES_AT_ONCE

RETRY_LATER = "429 `rate_limited` with `Retry-After`"

ASKS = AccountLimit(
    name="asks a minute",
    settings=settings,
    setting="CALLER_RATE_PER_MINUTE",
    counts="to all agents together",
    one_more="refused as `rate_limited`",
)
GATEWAY_MESSAGES = AccountLimit(
    name="gateway messages",
    at_most=f"{MESSAGES_A_SECOND:g} a second, {MESSAGES_AT_ONCE:g} at once",
    is_of_process=True,
    counts="of a token to sessions of its own user; these do not count as asks a minute. No limit with "
    "`CALLER_RATE_PER_MINUTE=0`",
    one_more="1005 with `retryAfterMs`",
)
STREAMS = AccountLimit(
    name="open streams", settings=settings, setting="STREAMS_PER_CALLER", is_of_process=True, one_more="429"
)
OPERATOR_SOCKETS = AccountLimit(
    name="operator sockets",
    settings=settings,
    setting="STREAMS_PER_CALLER",
    is_of_process=True,
    one_more="the socket is refused",
)
GATEWAY_CLIENTS = AccountLimit(
    name="gateway sockets without a seat",
    settings=settings,
    setting="STREAMS_PER_CALLER",
    is_of_process=True,
    one_more="1001 `CONNECTION_REFUSED`",
)
DOWNLOADS = AccountLimit(
    name="downloads under way",
    settings=settings,
    setting="DOWNLOADS_PER_OWNER",
    is_of_process=True,
    counts="exports, spreadsheets, files over 192 KiB",
    one_more=RETRY_LATER,
)
UPLOADS = AccountLimit(name="uploads under way", fixed=4, is_of_process=True, one_more=RETRY_LATER)
CARD_LOOKUPS = AccountLimit(
    name="card look-ups under way",
    fixed=4,
    is_of_process=True,
    counts="fetching the card of a remote A2A server",
    one_more=RETRY_LATER,
)
QUEUED_ASKS = AccountLimit(
    name="A2A questions that wait",
    fixed=MAX_QUEUED,
    is_of_process=True,
    counts="of all callers and agents; for one agent its cap of one caller, of all callers its `queueing.max`",
    one_more="refused as `busy` or `concurrency`",
)
