"""Webhooks as the sender sees them: which are due, and their requests, signed by two schemes with one secret.

Receivers verify the signatures as docs/howto/receive-webhooks.md says.
"""

import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from standardwebhooks import Webhook

from kit.durations import seconds
from kit.iso import iso
from webhooks.keyring import Unreadable, unseal
from webhooks.models import Delivery, Sendable, Subscription
from webhooks.queues import Request, traced

RETRY_AFTER_S = tuple(map(seconds, (10, 60, 300, 1800, 7200, 21600)))
EACH_SUBSCRIPTION = 2
USER_AGENT = "clawbridge-webhooks"
SIGNATURE = "X-Clawborrator-Signature"


class WebhookQueue:
    """See `webhooks.queues.Queue`."""

    rows: type[Sendable] = Delivery
    receiver = "subscription_id"
    owner = "subscription__owner_id"
    retry_after_s: Sequence[float] = RETRY_AFTER_S
    each_receiver = EACH_SUBSCRIPTION
    unreadable = "its signing secret cannot be read any more: roll it"

    def candidates(self, now: datetime) -> QuerySet[Any]:
        """See `Queue`."""
        due: QuerySet[Any] = Delivery.objects.due(now).filter(subscription__owner__is_active=True)
        return due.select_related("subscription")

    def request(self, delivery: Delivery, now: datetime) -> Request | None:
        """See `Queue`."""
        subscription: Subscription = delivery.subscription
        try:
            secrets = [unseal(sealed) for sealed in subscription.sealed_secrets(now)]
        except Unreadable:
            return None
        body = _body_of(delivery)
        signed = _headers_of(delivery.event_id, body, secrets, now)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **signed}
        return Request(url=subscription.url, headers=traced(headers, delivery.traceparent), body=body)

    def note(self, delivery: Delivery, now: datetime, *, is_success: bool, is_exhausted: bool) -> None:
        """See `Queue`."""
        receiver = Subscription.objects.filter(pk=delivery.subscription_id)
        if is_success:
            receiver.note_success(now)
        else:
            receiver.note_failure(exhausted=is_exhausted)


WEBHOOKS = WebhookQueue()


def _body_of(delivery: Delivery) -> bytes:
    """The bytes that are sent, the same in each attempt. The payload is JSON already."""
    head = f'{{"eventId":"{delivery.event_id}","type":{_quoted(delivery.type)},"ts":"{iso(delivery.queued_at)}",'
    return f'{head}"payload":{delivery.payload}}}'.encode()


def _headers_of(event_id: str, body: bytes, secrets: Sequence[str], now: datetime) -> dict[str, str]:
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
