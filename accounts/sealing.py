"""Secrets at rest, sealed with this hub's keys: a copy of the database must not be enough to use them.

Keys come from the setting WEBHOOK_KEYS, newest first, with Django's secret key and its fallbacks behind them: the
newest seals, all of them open.
"""

import base64
from functools import cache
from typing import Any

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.db.models import QuerySet

from accounts import settings
from kit import batches

RESEALED_AT_ONCE = 500


class SecretUnreadable(Exception):
    """No configured key decrypts the secret."""


def seal(text: str, purpose: bytes) -> str:
    """A secret as it is stored, for this purpose alone."""
    return _ring(purpose, _keys()).encrypt(text.encode("utf-8")).decode("ascii")


def unseal(sealed: str, purpose: bytes) -> str:
    """A stored secret in the clear.

    Raises:
        Unreadable: the key that sealed it is not among ours, or it was for another purpose.
    """
    try:
        return _ring(purpose, _keys()).decrypt(sealed.encode("ascii")).decode("utf-8")
    except InvalidToken:
        raise SecretUnreadable from None


def seal_json(value: Any, purpose: bytes) -> str:
    """Encrypt a value for storage, for this purpose alone."""
    return seal(msgspec.json.encode(value).decode(), purpose)


def open_json(sealed: str, purpose: bytes) -> Any:
    """Decrypt a stored value.

    Raises:
        Unreadable: as `unseal`, or the value is damaged.
    """
    try:
        return msgspec.json.decode(unseal(sealed, purpose))
    except msgspec.DecodeError:
        raise SecretUnreadable from None


def derive_key(purpose: bytes) -> bytes:
    """32 bytes for this purpose alone. The bytes change with Django's secret key."""
    return _derived(purpose, settings.SECRET_KEY)


def reseal_all(rows: QuerySet[Any], purpose: bytes, *columns: str) -> tuple[int, int]:
    """Seal columns of rows anew with the newest key; how many rows were, and how many could not be read.

    Leaves a row alone that changed in this moment: it is sealed with the newest key already.
    """
    done = unreadable = 0
    for batch in batches.walk_rows(rows, *columns, at_once=RESEALED_AT_ONCE):
        for key, *sealed in batch:
            try:
                fresh = [seal(unseal(one, purpose), purpose) if one else "" for one in sealed]
            except SecretUnreadable:
                unreadable += 1
                continue
            as_read = rows.filter(pk=key, **dict(zip(columns, sealed, strict=True)))
            as_read.update(**dict(zip(columns, fresh, strict=True)))
            done += 1
    return done, unreadable


def _keys() -> tuple[str, ...]:
    return (*settings.WEBHOOK_KEYS, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@cache
def _ring(purpose: bytes, keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([_fernet(purpose, key) for key in keys])


def _fernet(purpose: bytes, key: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(_derived(purpose, key)))


@cache
def _derived(purpose: bytes, key: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(key.encode("utf-8"))
