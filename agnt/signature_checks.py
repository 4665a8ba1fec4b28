"""Checks the signatures of one envelope with the keys of its sender. No I/O but the unsealing of keys."""

from msgspec import Struct

from agnt.envelope import Envelope
from agnt.errors import EnvelopeRefused, ErrorCode
from agnt.keys import FoundKey, load_signing_keys
from agnt.signing import verify_body, verify_payload

SIGNATURE_HEADER = "x-a2a-envelope-signature"


class Signed(Struct, frozen=True):
    """What the signatures say. `signature`: of the payload, empty without one. `late`: one matches, and is old."""

    signature: str = ""
    late: EnvelopeRefused | None = None


def check_signature(
    key: FoundKey, envelope: Envelope, *, header: str, body: bytes, text: str, now_s: float
) -> Signed:
    """Check `_sig` and `X-A2A-Envelope-Signature`, each where it is sent.

    A network that demands a signature takes either. An old one is not refused here: known envelopes are answered
    at any age.

    Raises:
        EnvelopeRefused: `invalid_signature`.
    """
    is_demanded = key.requires_signature and not header
    if not header and not is_demanded and "_sig" not in envelope.payload:
        return Signed()
    keys = load_signing_keys(key)
    late: EnvelopeRefused | None = None
    signature = ""
    if header:
        try:
            verify_body(header, body, keys=keys, now_s=now_s)
        except EnvelopeRefused as refused:
            late = _only_late(refused)
    try:
        signature = verify_payload(
            envelope.payload, keys=keys, sender=envelope.sender, now_s=now_s, text=text, is_demanded=is_demanded
        )
    except EnvelopeRefused as refused:
        late = _only_late(refused)
        signature = envelope.payload["_sig"]
    return Signed(signature, late)


def _only_late(refused: EnvelopeRefused) -> EnvelopeRefused:
    if refused.code != ErrorCode.TIMESTAMP_EXPIRED:
        raise refused
    return refused
