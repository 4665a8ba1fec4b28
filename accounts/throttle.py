"""Rate limits by address or user for sign-ins, exchanges and guesses, shared by all processes."""

import logging
import math
import time
from contextlib import suppress
from functools import cache

from django.http import HttpRequest
from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter

from accounts import settings
from accounts.errors import TooFast
from kit.concurrency import network_of

logger = logging.getLogger(__name__)

REDIS_WITHIN_S = 0.2
GUESSES_PER_MINUTE = 10
MISSED_LINKS_PER_MINUTE = 10
MISSED_LINK = "missed link"
MISSED_LINKS = "too many links from here lead nowhere"
PASSWORDS_PER_MINUTE = 10
PASSWORDS_PER_HOUR = 60
PASSWORDS_OF_ADDRESS_PER_MINUTE = 5
PASSWORDS_OF_ADDRESS_PER_HOUR = 20
CONFIRMATIONS_PER_HOUR = 5
CONFIRMATIONS_PER_DAY = 10
STORE_RETRY_S = 30


def check_address(request: HttpRequest, what: str) -> None:
    """Count one more request of this kind from the request's address.

    Raises:
        TooFast: there were SIGNIN_RATE_PER_MINUTE in the last minute.
    """
    _hit(what, address_of(request), RateLimitItemPerMinute(settings.SIGNIN_RATE_PER_MINUTE))


def check_missed_links(request: HttpRequest) -> None:
    """Refuse an address that opened many links that the hub does not have, also if it has this one.

    Raises:
        TooFast: the address missed MISSED_LINKS_PER_MINUTE in the last minute (`count_missed_link`).
    """
    item, who = RateLimitItemPerMinute(MISSED_LINKS_PER_MINUTE), address_of(request)
    try:
        if _limiter().test(item, "signin", MISSED_LINK, who):
            return
        window = _limiter().get_window_stats(item, "signin", MISSED_LINK, who)
    except Exception as failure:  # noqa: BLE001  any failure of the store opens the limit, as in `_hit`
        logger.warning("rate.open", extra={"failure": type(failure).__name__})
        return
    raise TooFast(max(1, math.ceil(window.reset_time - time.time())), MISSED_LINKS)


def count_missed_link(request: HttpRequest) -> None:
    """Count a link that the hub does not have."""
    with suppress(TooFast):
        _hit(MISSED_LINK, address_of(request), RateLimitItemPerMinute(MISSED_LINKS_PER_MINUTE))


def check_code_guesses(user_id: int) -> None:
    """Count one more code typed by a user.

    Raises:
        TooFast: there were GUESSES_PER_MINUTE in the last minute.
    """
    _hit("guess", str(user_id), RateLimitItemPerMinute(GUESSES_PER_MINUTE))


def check_passwords(request: HttpRequest, login: str) -> None:
    """Count one more password for a login, whether or not the login exists: for the address, then for the login.

    A request that is refused for its address does not count for the login: one address cannot lock a user out.

    Raises:
        TooFast: the limit of the address or the login for a minute or an hour is reached; or the store is out of
            reach, because a password may be short enough to be guessed.
    """
    login = login.lower()[:64]
    for what, who, per_minute, per_hour in (
        (
            "password of address",
            f"{address_of(request)} {login}",
            PASSWORDS_OF_ADDRESS_PER_MINUTE,
            PASSWORDS_OF_ADDRESS_PER_HOUR,
        ),
        ("password", login, PASSWORDS_PER_MINUTE, PASSWORDS_PER_HOUR),
    ):
        _hit(what, who, RateLimitItemPerMinute(per_minute), opens=False)
        _hit(what, who, RateLimitItemPerHour(per_hour), opens=False)


def check_confirmation_mails(user_id: int) -> None:
    """Count one more confirmation mail for a user: the address may belong to someone else.

    Raises:
        TooFast: there were CONFIRMATIONS_PER_HOUR in the last hour or CONFIRMATIONS_PER_DAY in the last day, or
            they cannot be counted.
    """
    for item in (RateLimitItemPerHour(CONFIRMATIONS_PER_HOUR), RateLimitItemPerDay(CONFIRMATIONS_PER_DAY)):
        _hit("confirmation mail", str(user_id), item, opens=False)


def address_of(request: HttpRequest) -> str:
    """The client's address; behind a trusted proxy, as the proxy says. All of an IPv6 /64 is one address."""
    return network_of(request.META.get("REMOTE_ADDR", ""))


def _hit(what: str, who: str, item: RateLimitItem, *, opens: bool = True) -> None:
    """Count one hit. If the store is out of reach, `opens` allows the hit: codes are too long to be guessed."""
    try:
        if _limiter().hit(item, "signin", what, who):
            return
        window = _limiter().get_window_stats(item, "signin", what, who)
    except Exception as failure:  # noqa: BLE001  any failure of the store opens the limit
        logger.warning("rate.open" if opens else "rate.closed", extra={"failure": type(failure).__name__})
        if opens:
            return
        raise TooFast(STORE_RETRY_S) from None
    raise TooFast(max(1, math.ceil(window.reset_time - time.time())))


@cache
def _limiter() -> MovingWindowRateLimiter:
    waits = {"socket_timeout": REDIS_WITHIN_S, "socket_connect_timeout": REDIS_WITHIN_S}
    address = settings.RATE_STORAGE
    options = waits if address.startswith("redis") else {}
    return MovingWindowRateLimiter(storage_from_string(address, **options))
