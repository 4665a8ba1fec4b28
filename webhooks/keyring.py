"""Signing secrets at rest (`accounts.sealing`): a copy of the database must not sign."""

import base64
import secrets

from accounts import sealing
from accounts.sealing import Unreadable
from webhooks.models import Subscription

__all__ = ["PREFIX", "Unreadable", "new_secret", "reseal_all", "seal", "unseal"]

PREFIX = "whsec_"
SECRET_BYTES = 32
PURPOSE = b"webhook signing secrets"


def new_secret() -> str:
    """A signing secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def seal(secret: str) -> str:
    """A secret as it is stored."""
    return sealing.seal(secret, PURPOSE)


def unseal(sealed: str) -> str:
    """A stored secret in the clear.

    Raises:
        Unreadable: the key that sealed it is not among ours.
    """
    return sealing.unseal(sealed, PURPOSE)


def reseal_all() -> tuple[int, int]:
    """Seal every secret anew with the newest key; how many subscriptions were, and how many could not be read."""
    return sealing.reseal_all(Subscription.objects.all(), PURPOSE, "secret", "previous_secret")
