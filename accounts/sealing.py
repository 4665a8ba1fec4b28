"""Encrypts secrets at rest with the hub's keys, so that a copy of the database is not enough to use them.

The keys are those of the setting WEBHOOK_KEYS, newest first, then Django's secret key and its fallbacks: the first
key encrypts, and all of them decrypt.
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
    """Encrypt a secret for storage; it can be decrypted only for the same purpose."""
    return _ring(purpose, _keys()).encrypt(text.encode("utf-8")).decode("ascii")


def unseal(sealed: str, purpose: bytes) -> str:
    """Decrypt a stored secret.

    Raises:
        SecretUnreadable: none of the hub's keys encrypted the secret, or it is for another purpose.
    """
    try:
        return _ring(purpose, _keys()).decrypt(sealed.encode("ascii")).decode("utf-8")
    except InvalidToken:
        raise SecretUnreadable from None


def seal_json(value: Any, purpose: bytes) -> str:
    """Encrypt a JSON value for storage; see `seal`."""
    return seal(msgspec.json.encode(value).decode(), purpose)


def open_json(sealed: str, purpose: bytes) -> Any:
    """Decrypt a stored value.

    Raises:
        SecretUnreadable: as for `unseal`, or the value is damaged.
    """
    try:
        return msgspec.json.decode(unseal(sealed, purpose))
    except msgspec.DecodeError:
        raise SecretUnreadable from None


def derive_key(purpose: bytes) -> bytes:
    """Derive 32 bytes for this purpose from Django's secret key."""
    return _derived(purpose, settings.SECRET_KEY)


def reseal_all(rows: QuerySet[Any], purpose: bytes, *columns: str) -> tuple[int, int]:
    """Encrypt columns of rows again with the newest key; returns the numbers of rows done and of unreadable rows.

    A row that another process changes meanwhile is not touched: it has the newest key already.
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
