"""Subscriptions and deliveries of one database, and ways to make time pass for them."""

import hashlib
import hmac
from typing import Any

from standardwebhooks import Webhook

from accounts.models import Credential, User
from accounts.tokens import mint
from kit.clock import db_now
from kit.outbox import AttemptResult, Leased, Sender, SendLimits, lease, settle
from lab.receivers import Received
from webhooks.models import Delivery, Subscription
from webhooks.service.outbox import OutboxEvent, record
from webhooks.service.sending import WebhookOutbox, client
from webhooks.service.subscriptions import WithSecret, subscribe

NOWHERE = "https://hook.invalid/"


def subscribed(owner: User, url: str = NOWHERE, events: str = "*", **fields: Any) -> WithSecret:
    return subscribe(owner, {"url": url, "events": events, **fields})


def mint_key(owner: User) -> Credential:
    return mint(owner, Credential.Kind.AGNT, "a key").credential


def subscribed_by_key(key: Credential, url: str = NOWHERE, events: str = "*") -> WithSecret:
    """A webhook that a credential owns."""
    return subscribe(key.user, {"url": url, "events": events}, credential_id=key.pk)


def happening(*audience: User, type: str = "chat.event", **fields: Any) -> OutboxEvent:
    fields = {"payload": {"n": 1}, **fields}
    return OutboxEvent(type=type, audience=[user.pk for user in audience], **fields)


def happen(*audience: User, **fields: Any) -> int:
    """One event; how many are told."""
    return record([happening(*audience, **fields)])


def deliver() -> int:
    """Send the deliveries that are due, as the job does; the number of attempts."""
    return Sender(WebhookOutbox(client())).run()


def end_lease(leased: Leased, outcome: AttemptResult) -> bool:
    return settle(WebhookOutbox(client()), leased, outcome)


def make_due() -> None:
    """Make all later attempts due now; leases run out."""
    Delivery.objects.exclude(next_attempt_at=None).update(next_attempt_at=db_now())


def only_delivery() -> Delivery:
    return Delivery.objects.select_related("subscription").get()


def fresh(subscription: Subscription) -> Subscription:
    return Subscription.objects.get(pk=subscription.pk)


def check_signed(one: Received, *secrets: str) -> Any:
    """The body of a request whose two signatures are good for each secret, by the receiver's own means."""
    parts = [pair.split("=", 1) for pair in one.headers["x-clawborrator-signature"].split(",")]
    assert parts[0][0] == "t"
    assert [name for name, _ in parts[1:]] == ["v1"] * len(secrets)
    signed = parts[0][1].encode() + b"." + one.body
    given = [value for _, value in parts[1:]]
    assert given == [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
    assert one.headers["webhook-timestamp"] == parts[0][1]
    bodies = [Webhook(secret).verify(one.body, one.headers) for secret in secrets]
    assert bodies[0]["eventId"] == one.headers["webhook-id"]
    return bodies[0]


def lease_due(limits: SendLimits | None = None) -> list[Leased]:
    """The deliveries that a sender begins to send now."""
    outbox = WebhookOutbox(client())
    return lease(outbox, limits or SendLimits(outbox))
