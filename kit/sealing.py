"""Secrets at rest: sealed by keys that can change, because a copy of the database must not be able to use them.

Each purpose derives keys of its own, so that what was sealed for one cannot be opened as another's.
"""

import base64
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class Unreadable(Exception):
    """No key of ours opens it: its key is gone."""


class Sealer:
    """Seals with the first of some keys, opens with any of them."""

    def __init__(self, keys: tuple[str, ...], purpose: bytes) -> None:
        self._keys = _keys_of(keys, purpose)

    def seal(self, secret: str) -> str:
        """A secret as it is stored."""
        return self._keys.encrypt(secret.encode("utf-8")).decode("ascii")

    def unseal(self, sealed: str) -> str:
        """A stored secret in the clear.

        Raises:
            Unreadable: the key that sealed it is not among ours.
        """
        try:
            return self._keys.decrypt(sealed.encode("ascii")).decode("utf-8")
        except InvalidToken:
            raise Unreadable from None


@cache
def _keys_of(texts: tuple[str, ...], purpose: bytes) -> MultiFernet:
    return MultiFernet([_fernet(text, purpose) for text in texts])


def _fernet(text: str, purpose: bytes) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(text.encode("utf-8"))
    return Fernet(base64.urlsafe_b64encode(derived))
