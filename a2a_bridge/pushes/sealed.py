"""What goes along with a POST to a caller's address, at rest: sealed by the keys that seal webhooks' secrets."""

import msgspec
from django.conf import settings

from a2a_bridge.push_models import PushConfig
from a2a_bridge.requests import PushTarget
from kit import sealing
from kit.sealing import Unreadable

__all__ = ["Secrets", "Unreadable", "reseal_all", "seal", "unseal"]

PURPOSE = b"push configs"
RESEALED_AT_ONCE = 500


class Secrets(msgspec.Struct, frozen=True):
    """Headers only the receiver and its caller know."""

    token: str = ""
    scheme: str = ""
    credentials: str = ""


def seal(target: PushTarget) -> str:
    """Its secrets as they are stored."""
    return _seal(Secrets(target.token, target.scheme, target.credentials))


def unseal(sealed: str) -> Secrets:
    """Stored secrets in the clear.

    Raises:
        Unreadable: the key that sealed them is not among ours.
    """
    return msgspec.json.decode(sealing.unseal(sealed, PURPOSE, _keys()), type=Secrets)


def reseal_all() -> tuple[int, int]:
    """Seal all of them anew with the newest key; how many were, and how many could not be read."""
    done = unreadable = last = 0
    while batch := list(PushConfig.objects.filter(pk__gt=last).order_by("pk")[:RESEALED_AT_ONCE]):
        for one in batch:
            was_read = _reseal(one)
            done, unreadable = done + was_read, unreadable + (not was_read)
        last = batch[-1].pk
    return done, unreadable


def _reseal(one: PushConfig) -> bool:
    try:
        fresh = _seal(unseal(one.sealed))
    except Unreadable:
        return False
    PushConfig.objects.filter(pk=one.pk, sealed=one.sealed).update(sealed=fresh)
    return True


def _seal(secrets: Secrets) -> str:
    return sealing.seal(msgspec.json.encode(secrets).decode("utf-8"), PURPOSE, _keys())


def _keys() -> tuple[str, ...]:
    return (*settings.WEBHOOK_KEYS, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
