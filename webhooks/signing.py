"""What a receiver checks (docs/howto/receive-webhooks.md): two signatures of one body, by one secret."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import datetime

from standardwebhooks import Webhook

from kit.iso import iso
from webhooks.models import Delivery

SIGNATURE = "X-Clawborrator-Signature"


def body_of(delivery: Delivery) -> bytes:
    """The bytes that are sent, the same in each attempt. The payload is JSON already."""
    head = f'{{"eventId":"{delivery.event_id}","type":{_quoted(delivery.type)},"ts":"{iso(delivery.queued_at)}",'
    return f'{head}"payload":{delivery.payload}}}'.encode()


def headers_of(event_id: str, body: bytes, secrets: Sequence[str], now: datetime) -> dict[str, str]:
    """The headers of one attempt: each secret signs, newest first, at this very moment.

    `X-Clawborrator-Signature` takes the secret's text as its key, all of it; Standard Webhooks take the bytes that
    the part behind `whsec_` is the base64 of.
    """
    moment = int(now.timestamp())
    text = body.decode("utf-8")
    return {
        SIGNATURE: ",".join([f"t={moment}", *(f"v1={_hmac(secret, moment, body)}" for secret in secrets)]),
        "webhook-id": event_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": " ".join(Webhook(secret).sign(event_id, now, text) for secret in secrets),
    }


def _hmac(secret: str, moment: int, body: bytes) -> str:
    return hmac.new(secret.encode("ascii"), f"{moment}.".encode("ascii") + body, hashlib.sha256).hexdigest()


def _quoted(event_type: str) -> str:
    return json.dumps(event_type)
