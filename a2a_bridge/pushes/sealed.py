"""What goes along with a POST to a caller's address, at rest: sealed by the keys that seal webhooks' secrets."""

import msgspec

from a2a_bridge.push_models import PushConfig
from a2a_bridge.requests import PushTarget
from accounts import sealing
from accounts.sealing import Unreadable

__all__ = ["Secrets", "Unreadable", "reseal_all", "seal", "unseal"]

PURPOSE = b"push configs"


class Secrets(msgspec.Struct, frozen=True):
    """Headers only the receiver and its caller know."""

    token: str = ""
    scheme: str = ""
    credentials: str = ""


def seal(target: PushTarget) -> str:
    """Its secrets as they are stored."""
    secrets = Secrets(target.token, target.scheme, target.credentials)
    return sealing.seal(msgspec.json.encode(secrets).decode("utf-8"), PURPOSE)


def unseal(sealed: str) -> Secrets:
    """Stored secrets in the clear.

    Raises:
        Unreadable: the key that sealed them is not among ours.
    """
    return msgspec.json.decode(sealing.unseal(sealed, PURPOSE), type=Secrets)


def reseal_all() -> tuple[int, int]:
    """Seal all of them anew with the newest key; how many were, and how many could not be read."""
    return sealing.reseal_all(PushConfig.objects.all(), PURPOSE, "sealed")
