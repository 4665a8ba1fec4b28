"""How often one address or user may begin, exchange or guess: by the `limits` library, shared by all processes."""

import ipaddress
import logging
import math
import time
from functools import cache

from django.conf import settings
from django.http import HttpRequest
from limits import RateLimitItemPerMinute
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter

from accounts.oauth.errors import TooFast

logger = logging.getLogger(__name__)

REDIS_WITHIN_S = 0.2
GUESSES_PER_MINUTE = 10


def check_address(request: HttpRequest, what: str) -> None:
    """Count one more of these from the request's address.

    Raises:
        TooFast: there were SIGNIN_RATE_PER_MINUTE in the last minute.
    """
    _hit(what, address_of(request), settings.SIGNIN_RATE_PER_MINUTE)


def check_guesses(user_id: int) -> None:
    """Count one more code typed by a user.

    Raises:
        TooFast: there were GUESSES_PER_MINUTE in the last minute.
    """
    _hit("guess", str(user_id), GUESSES_PER_MINUTE)


def address_of(request: HttpRequest) -> str:
    """Where a request comes from; behind a trusted proxy, what the proxy says. All of an IPv6 /64 is one."""
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return "unknown"
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _hit(what: str, who: str, per_minute: int) -> None:
    """Opens when the storage is gone, unlike the limit on callers: the codes are long enough by themselves."""
    item = RateLimitItemPerMinute(per_minute)
    try:
        if _limiter().hit(item, "signin", what, who):
            return
        window = _limiter().get_window_stats(item, "signin", what, who)
    except Exception as failure:  # noqa: BLE001  any failure of the store opens the limit
        logger.warning("rate.open", extra={"failure": type(failure).__name__})
        return
    raise TooFast(max(1, math.ceil(window.reset_time - time.time())))


@cache
def _limiter() -> MovingWindowRateLimiter:
    waits = {"socket_timeout": REDIS_WITHIN_S, "socket_connect_timeout": REDIS_WITHIN_S}
    options = waits if settings.RATE_STORAGE.startswith("redis") else {}
    return MovingWindowRateLimiter(storage_from_string(settings.RATE_STORAGE, **options))
