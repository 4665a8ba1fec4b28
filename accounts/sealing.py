"""Secrets at rest, sealed with this hub's keys: a copy of the database must not be enough to use them.

Keys come from the setting WEBHOOK_KEYS, newest first, with Django's secret key and its fallbacks behind them: the
newest seals, all of them open.
"""

from typing import Any

from django.db.models import QuerySet

from accounts.settings import get_settings
from kit import batches, sealing
from kit.sealing import Unreadable

__all__ = ["Unreadable", "pseudonym", "reseal_all", "seal", "unseal"]

RESEALED_AT_ONCE = 500


def seal(text: str, purpose: bytes) -> str:
    """A secret as it is stored, for this purpose alone."""
    return sealing.seal(text, purpose, _keys())


def unseal(sealed: str, purpose: bytes) -> str:
    """A stored secret in the clear.

    Raises:
        Unreadable: the key that sealed it is not among ours, or it was for another purpose.
    """
    return sealing.unseal(sealed, purpose, _keys())


def pseudonym(name: str, purpose: bytes) -> str:
    """An opaque name in place of another, for this purpose alone. It changes with Django's secret key."""
    return sealing.pseudonym(name, purpose, get_settings().secret_key)


def reseal_all(rows: QuerySet[Any], purpose: bytes, *columns: str) -> tuple[int, int]:
    """Seal columns of rows anew with the newest key; how many rows were, and how many could not be read.

    Leaves a row alone that changed in this moment: it is sealed with the newest key already.
    """
    done = unreadable = 0
    for batch in batches.walk(rows, *columns, at_once=RESEALED_AT_ONCE):
        for key, *sealed in batch:
            try:
                fresh = [seal(unseal(one, purpose), purpose) if one else "" for one in sealed]
            except Unreadable:
                unreadable += 1
                continue
            as_read = rows.filter(pk=key, **dict(zip(columns, sealed, strict=True)))
            as_read.update(**dict(zip(columns, fresh, strict=True)))
            done += 1
    return done, unreadable


def _keys() -> tuple[str, ...]:
    settings = get_settings()
    return (*settings.webhook_keys, settings.secret_key, *settings.secret_key_fallbacks)
