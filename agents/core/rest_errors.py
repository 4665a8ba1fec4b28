"""The answers to callers of REST when a request outside of Django fails; `accounts.rest` has the same for
views.
"""

import logging

from accounts.error_responses import INTERNAL, INTERNAL_TEXT, UNAVAILABLE_TEXT
from agents.core.errors import Unavailable
from kit.asgi import RETRY_SOON, RequestRefused
from kit.sql import DATABASE_UNAVAILABLE

logger = logging.getLogger(__name__)


def public_refusal(
    failure: Exception, log_key: str, path: str, *, unavailable: str = UNAVAILABLE_TEXT
) -> RequestRefused:
    """The refusal that the caller gets for a failure. A failure that no code foresaw is logged, and tells nothing.

    `unavailable`: the text where the hub takes nothing now.
    """
    if isinstance(failure, RequestRefused):
        return failure
    if isinstance(failure, (Unavailable, *DATABASE_UNAVAILABLE)):
        return RequestRefused(503, "unavailable", unavailable, RETRY_SOON)
    logger.error(log_key, exc_info=failure, extra={"path": path})
    return RequestRefused(500, INTERNAL, INTERNAL_TEXT)
