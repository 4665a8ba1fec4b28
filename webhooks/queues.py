"""What the sender works on: tables of things to send, their signed requests, and the pause that holds all of them.

Receivers verify the signatures of webhooks as docs/howto/receive-webhooks.md says.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.db.models import QuerySet
from standardwebhooks import Webhook

from accounts import sealing
from kit import trace
from kit.clock import db_now, iso
from kit.durations import seconds
from webhooks.models import Delivery, Sendable, SendingPause, Subscription

RETRY_AFTER_S = tuple(map(seconds, (10, 60, 300, 1800, 7200, 21600)))
EACH_SUBSCRIPTION = 2
USER_AGENT = "clawbridge-webhooks"
SIGNATURE = "X-Clawborrator-Signature"
SECRET_PREFIX = "whsec_"  # noqa: S105  no secret
SECRET_BYTES = 32
PURPOSE = b"webhook signing secrets"
MAX_REASON_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One attempt's POST, signed and ready."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def traced(headers: Mapping[str, str], traceparent: str) -> Mapping[str, str]:
    """With a span of this attempt's own, where it tells of something that is part of a trace."""
    return {**headers, trace.HEADER: trace.follow(traceparent)} if traceparent else headers


@dataclass(frozen=True, slots=True)
class EventForm:
    """What deliveries of some events have besides what all have; a package above says so, by `set_form`.

    `copies`: further members of the body, each with the name of the one whose value it repeats. `sign`: makes
    further headers of the secrets (as text, newest first), the time in Unix seconds, and the body.
    """

    copies: Mapping[str, str]
    sign: Callable[[Sequence[str], int, bytes], Mapping[str, str]]


_forms: dict[str, EventForm] = {}


def set_form(event_types: Iterable[str], form: EventForm) -> None:
    """Have deliveries of these events take this form, in this program."""
    _forms.update(dict.fromkeys(event_types, form))


class Queue(Protocol):
    """One kind of deliveries. `receiver`, `owner`: paths of ids from a row; the sender asks for nothing else.

    `retry_after_s`: the waits between attempts; after the last one the delivery has failed. `each_receiver`: how
    many are under way to one receiver at once. `unreadable`: why there can be no request.
    """

    rows: type[Sendable]
    receiver: str
    owner: str
    retry_after_s: Sequence[float]
    each_receiver: int
    unreadable: str

    def candidates(self, now: datetime) -> QuerySet[Any]:
        """What may be sent now, with its receiver."""

    def request(self, delivery: Any, now: datetime) -> Request | None:
        """In the database's thread: the attempt, signed now; None when a secret of it cannot be read any more."""

    def note(self, delivery: Any, now: datetime, *, is_success: bool, is_exhausted: bool) -> None:
        """Update what is known of the receiver; called in the transaction that stores how an attempt ended."""

    def response_columns(self, response: str) -> Mapping[str, Any]:
        """What the row keeps of the beginning of an answer's body."""


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
        due: QuerySet[Any] = Delivery.objects.due(now).filter(
            subscription__owner__is_active=True, subscription__paused_at=None
        )
        return due.select_related("subscription")

    def request(self, delivery: Delivery, now: datetime) -> Request | None:
        """See `Queue`."""
        subscription: Subscription = delivery.subscription
        try:
            secrets = [unseal_secret(sealed) for sealed in subscription.sealed_secrets(now)]
        except sealing.Unreadable:
            return None
        body = body_of(delivery)
        signed = _headers_of(delivery.event_id, body, secrets, now)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **signed}
        if form := _forms.get(delivery.type):
            headers |= form.sign(secrets, int(now.timestamp()), body)
        return Request(url=subscription.url, headers=traced(headers, delivery.traceparent), body=body)

    def note(self, delivery: Delivery, now: datetime, *, is_success: bool, is_exhausted: bool) -> None:
        """See `Queue`."""
        receiver = Subscription.objects.filter(pk=delivery.subscription_id)
        if is_success:
            receiver.note_success(now)
        else:
            receiver.note_failure(exhausted=is_exhausted)

    def response_columns(self, response: str) -> Mapping[str, Any]:
        """See `Queue`."""
        return {"last_response": response}


WEBHOOKS = WebhookQueue()


def body_of(delivery: Delivery) -> bytes:
    """The bytes that are sent, the same in each attempt. The payload is JSON already."""
    members = {
        "eventId": f'"{delivery.event_id}"',
        "type": json.dumps(delivery.type),
        "ts": f'"{iso(delivery.queued_at)}"',
        "payload": delivery.payload,
    }
    if form := _forms.get(delivery.type):
        members |= {name: members[of] for name, of in form.copies.items()}
    joined = ",".join(f'"{name}":{value}' for name, value in members.items())
    return f"{{{joined}}}".encode()


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


def new_signing_secret() -> str:
    """A signing secret: `whsec_` and 32 random bytes in base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def seal_secret(secret: str) -> str:
    """A secret as it is stored."""
    return sealing.seal(secret, PURPOSE)


def unseal_secret(sealed: str) -> str:
    """A stored secret in the clear.

    Raises:
        Unreadable: the key that sealed it is not among ours.
    """
    return sealing.unseal(sealed, PURPOSE)


def reseal_secrets() -> tuple[int, int]:
    """Seal every secret anew with the newest key; how many subscriptions were, and how many could not be read."""
    return sealing.reseal_all(Subscription.objects.all(), PURPOSE, "secret", "previous_secret")


def pause_sending(reason: str = "") -> tuple[SendingPause, bool]:
    """Send nothing from now on, in any process; attempts that have begun end. The pause, and whether it is new."""
    made: tuple[SendingPause, bool] = SendingPause.objects.get_or_create(
        pk=SendingPause.ONLY, defaults={"paused_at": db_now(), "reason": reason[:MAX_REASON_CHARS]}
    )
    return made


def resume_sending() -> bool:
    """Send again, what waited first; False when sending was not paused."""
    return bool(SendingPause.objects.filter(pk=SendingPause.ONLY).delete()[0])


def find_pause() -> SendingPause | None:
    """The pause, while there is one."""
    return SendingPause.objects.filter(pk=SendingPause.ONLY).first()
