"""Signatures of frames: HMAC-SHA256 over their canonical JSON, by a key of the team (docs/adr/0140).

They are verified where the team demands them, and passed on otherwise.
"""

import hmac
from collections.abc import Mapping

import rfc8785

from accounts.models import User
from accounts.sealing import reseal_all, seal
from gateway import limits
from gateway.models import EnvelopeKey
from gateway.service.team.team_rules import PURPOSE, TeamRules
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frame_types import FRAME_TYPES
from gateway.wire.frames import Envelope, Json
from kit.ids import unguessable

ALG = "HMAC-SHA256"


async def check_signature(rules: TeamRules, owner_id: int, envelope: Envelope) -> None:
    """Check the signature of a frame, if its team demands one.

    Raises:
        FrameRefused: 5002 `bad_signature`; it has none, or not this one.
    """
    if FRAME_TYPES[envelope.type].before_auth:
        return
    team = await rules.get(owner_id)
    if team.demands_signature and not is_signed(envelope.frame, team.keys):
        text = f"metadata.signature: want {ALG} by a key of this team, over the canonical JSON of the frame"
        raise FrameRefused(ErrorCode.AUTH_FAILED, text, field="metadata.signature", reason="bad_signature")


def is_signed(frame: Json, keys: Mapping[str, bytes]) -> bool:
    """Whether a frame has a signature by one of these keys."""
    signature = frame.get("metadata", {}).get("signature")
    if not isinstance(signature, dict) or signature.get("alg") != ALG:
        return False
    key_id, value = signature.get("keyId"), signature.get("value")
    if not isinstance(key_id, str) or not isinstance(value, str) or key_id not in keys:
        return False
    try:
        expected = make_signature(frame, keys[key_id])
    except rfc8785.CanonicalizationError:  # numbers that not every program reads alike
        return False
    return hmac.compare_digest(expected.encode(), value.encode("utf-8", "surrogatepass"))


def make_signature(frame: Json, key: bytes) -> str:
    """The value of a frame's signature, in hex.

    Raises:
        rfc8785.CanonicalizationError: it has no canonical form.
    """
    return hmac.digest(key, canonicalize(frame), "sha256").hex()


def canonicalize(frame: Json) -> bytes:
    """A frame without its signature as RFC 8785 has it: sorted keys, no spaces, numbers as in JavaScript."""
    metadata = frame.get("metadata")
    if isinstance(metadata, dict) and "signature" in metadata:
        frame = frame | {"metadata": {key: value for key, value in metadata.items() if key != "signature"}}
    return rfc8785.dumps(frame)


def make_key(owner: User, name: str) -> tuple[EnvelopeKey, str]:
    """A new key of a team, and its secret, which is shown this once. Call it in a transaction.

    Raises:
        accounts.quotas.QuotaExceeded: the team has as many keys as one may have.
    """
    limits.TEAM_KEYS.check(owner.pk)
    secret = unguessable("gwk_")
    key = EnvelopeKey.objects.create(
        owner=owner, key_id=unguessable("key-"), name=name, secret=seal(secret, PURPOSE)
    )
    return key, secret


def reseal_keys() -> tuple[int, int]:
    """Seal the keys of all teams with the newest key of the hub; how many, and how many cannot be read."""
    return reseal_all(EnvelopeKey.objects.all(), PURPOSE, "secret")
