"""Secrets at rest: sealed by keys that can change, so that a copy of the database is not enough to use them."""

import base64
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class Unreadable(Exception):
    """No key of ours opens it: its key is gone."""


def seal(text: str, purpose: bytes, keys: tuple[str, ...]) -> str:
    """A secret as it is stored, sealed with the first of the keys for this purpose alone."""
    return _ring(purpose, keys).encrypt(text.encode("utf-8")).decode("ascii")


def unseal(sealed: str, purpose: bytes, keys: tuple[str, ...]) -> str:
    """A stored secret in the clear; any of the keys may have sealed it.

    Raises:
        Unreadable: none of them did, or not for this purpose.
    """
    try:
        return _ring(purpose, keys).decrypt(sealed.encode("ascii")).decode("utf-8")
    except InvalidToken:
        raise Unreadable from None


@cache
def _ring(purpose: bytes, keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([_fernet(purpose, key) for key in keys])


def _fernet(purpose: bytes, key: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(key.encode("utf-8"))
    return Fernet(base64.urlsafe_b64encode(derived))
