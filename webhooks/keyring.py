"""Signing secrets at rest: sealed by keys that can change, because a copy of the database must not sign.

Keys come from the setting WEBHOOK_KEYS, newest first, with Django's secret key and its fallbacks behind them: the
newest seals, all of them open.
"""

import base64
import secrets

from django.conf import settings

from kit import sealing
from kit.sealing import Unreadable
from webhooks.models import Subscription

__all__ = ["PREFIX", "Unreadable", "new_secret", "reseal_all", "seal", "unseal"]

PREFIX = "whsec_"
SECRET_BYTES = 32
PURPOSE = b"webhook signing secrets"
RESEALED_AT_ONCE = 500


def new_secret() -> str:
    """A signing secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def seal(secret: str) -> str:
    """A secret as it is stored."""
    return sealing.seal(secret, PURPOSE, _keys())


def unseal(sealed: str) -> str:
    """A stored secret in the clear.

    Raises:
        Unreadable: the key that sealed it is not among ours.
    """
    return sealing.unseal(sealed, PURPOSE, _keys())


def reseal_all() -> tuple[int, int]:
    """Seal every secret anew with the newest key; how many subscriptions were, and how many could not be read."""
    done = unreadable = last = 0
    while batch := list(Subscription.objects.filter(pk__gt=last).order_by("pk")[:RESEALED_AT_ONCE]):
        for one in batch:
            was_read = _reseal(one)
            done, unreadable = done + was_read, unreadable + (not was_read)
        last = batch[-1].pk
    return done, unreadable


def _reseal(one: Subscription) -> bool:
    """Leaves a row alone whose secret was rolled in this moment: it is sealed with the newest key already."""
    try:
        fresh = [seal(unseal(sealed)) if sealed else "" for sealed in (one.secret, one.previous_secret)]
    except Unreadable:
        return False
    Subscription.objects.filter(pk=one.pk, secret=one.secret).update(secret=fresh[0], previous_secret=fresh[1])
    return True


def _keys() -> tuple[str, ...]:
    return (*settings.WEBHOOK_KEYS, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
