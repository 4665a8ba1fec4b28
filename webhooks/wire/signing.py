"""The body of a delivery and how it is signed: receivers verify as docs/howto/receive-webhooks.md says."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from datetime import datetime

from standardwebhooks import Webhook

from kit.clock import iso
from webhooks.wire.catalog import FORMS

SIGNATURE = "X-Clawborrator-Signature"
SECRET_PREFIX = "whsec_"  # noqa: S105  no secret
SECRET_BYTES = 32


def write_body(event_id: str, event_type: str, queued_at: datetime, payload: str) -> bytes:
    """The bytes that are sent, the same in each attempt. `payload` is JSON already."""
    members = {
        "eventId": f'"{event_id}"',
        "type": json.dumps(event_type),
        "ts": f'"{iso(queued_at)}"',
        "payload": payload,
    }
    if form := FORMS.get(event_type):
        members |= {name: members[of] for name, of in form.copies.items()}
    joined = ",".join(f'"{name}":{value}' for name, value in members.items())
    return f"{{{joined}}}".encode()


def sign(event_id: str, event_type: str, body: bytes, secrets: Sequence[str], now: datetime) -> dict[str, str]:
    """The headers of one attempt: each secret signs, newest first, at this very moment.

    `X-Clawborrator-Signature` takes the secret's text as its key, all of it; Standard Webhooks take the bytes that
    the part behind `whsec_` is the base64 of.
    """
    moment = int(now.timestamp())
    text = body.decode("utf-8")
    headers = {
        SIGNATURE: ",".join([f"t={moment}", *(f"v1={_hmac(secret, moment, body)}" for secret in secrets)]),
        "webhook-id": event_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": " ".join(Webhook(secret).sign(event_id, now, text) for secret in secrets),
    }
    if form := FORMS.get(event_type):
        headers |= form.sign(secrets, moment, body)
    return headers


def new_signing_secret() -> str:
    """A signing secret: `whsec_` and 32 random bytes in base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def _hmac(secret: str, moment: int, body: bytes) -> str:
    return hmac.new(secret.encode("ascii"), f"{moment}.".encode("ascii") + body, hashlib.sha256).hexdigest()
