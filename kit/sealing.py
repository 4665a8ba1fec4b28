"""Secrets at rest: sealed by keys that can change, so that a copy of the database is not enough to use them."""

import base64
import hmac
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

PSEUDONYM_BYTES = 16


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


def pseudonym(name: str, purpose: bytes, key: str) -> str:
    """An opaque name in place of another: the same for the same name, purpose and key, and no way back."""
    return hmac.digest(_derived(purpose, key), name.encode("utf-8"), "sha256")[:PSEUDONYM_BYTES].hex()


@cache
def _ring(purpose: bytes, keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([_fernet(purpose, key) for key in keys])


def _fernet(purpose: bytes, key: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(_derived(purpose, key)))


@cache
def _derived(purpose: bytes, key: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(key.encode("utf-8"))
