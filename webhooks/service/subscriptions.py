"""Creating, changing and deleting subscriptions: shared by the native API and the admin."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.quotas import lock_owner
from kit.clock import db_now
from webhooks import limits
from webhooks.models import Subscription
from webhooks.service.outbox import OutboxEvent, queue, wake
from webhooks.service.sending import seal_secret
from webhooks.wire import STAFF_ACTED, TEST, new_signing_secret

OVERLAP = timedelta(hours=24)
ONLY_STAFF = f"only a webhook of an administrator gets {STAFF_ACTED}"
TEST_MESSAGE = "This is a test: your webhook works."


@dataclass(frozen=True, slots=True)
class WithSecret:
    """A subscription and its new secret, which is shown only once."""

    subscription: Subscription
    secret: str


class EventRefused(ValueError):
    """The owner of the webhook may not get an event; the text is public, and nothing was written."""


@transaction.atomic
def subscribe(owner: User, details: Mapping[str, Any], *, credential_id: int | None = None) -> WithSecret:
    """Create a subscription; `details`: fields of `Subscription`. `credential_id`: of the API key that owns it.

    Raises:
        EventRefused: only an administrator may get one of the events.
        accounts.quotas.QuotaExceeded: nothing was written.
    """
    _check_events(details, owner, is_of_key=credential_id is not None)
    if credential_id is None:
        limits.WEBHOOKS.check(owner.pk)
    else:
        lock_owner(owner.pk)
        limits.WEBHOOKS_OF_KEY.check_number(Subscription.objects.of_key(credential_id).count())
    secret = new_signing_secret()
    made = Subscription.objects.create(
        owner=owner, credential_id=credential_id, secret=seal_secret(secret), **details
    )
    return WithSecret(made, secret)


def revise(subscription: Subscription, changes: Mapping[str, Any]) -> bool:
    """Change fields; returns False if the subscription was deleted.

    Waiting deliveries go to the new URL, and at once when `paused_at` becomes None. A pause that holds keeps
    the time when it began.

    Raises:
        EventRefused: only an administrator may get one of the events.
    """
    _check_events(changes, subscription.owner, is_of_key=subscription.credential_id is not None)
    changed = dict(changes)
    if changed.get("paused_at") and subscription.paused_at:
        del changed["paused_at"]
    for field, value in changed.items():
        setattr(subscription, field, value)
    if changed and not Subscription.objects.filter(pk=subscription.pk).update(**changed):
        return False
    if "paused_at" in changed:
        transaction.on_commit(wake)
    return True


def _check_events(details: Mapping[str, Any], owner: User, *, is_of_key: bool) -> None:
    is_asked = STAFF_ACTED in details.get("events", "").split()
    if is_asked and (is_of_key or not owner.is_staff):
        raise EventRefused(ONLY_STAFF)


@transaction.atomic
def roll_secret(subscription_id: int) -> WithSecret | None:
    """Make a new secret; the previous secret signs too for 24 h. Returns None if the subscription was deleted."""
    found: Subscription | None = (
        Subscription.objects.select_for_update(no_key=True).filter(pk=subscription_id).first()
    )
    if found is None:
        return None
    secret = new_signing_secret()
    found.previous_secret, found.secret = found.secret, seal_secret(secret)
    found.previous_until = db_now() + OVERLAP
    found.save(update_fields=["secret", "previous_secret", "previous_until"])
    return WithSecret(found, secret)


@transaction.atomic
def unsubscribe(subscription_id: int) -> None:
    """Delete a subscription with its deliveries."""
    held = Subscription.objects.select_for_update().filter(pk=subscription_id).first()
    if held is not None:  # a transaction that queues a delivery waits for this one, and then finds no subscription
        held.delete()


@transaction.atomic
def send_test(subscription: Subscription) -> str:
    """Queue a `webhook.test`, whatever the types and the state of the subscription; returns the event's id."""
    payload = {"webhookId": subscription.pk, "message": TEST_MESSAGE}
    return queue([(subscription.pk, OutboxEvent(type=TEST, audience=(), payload=payload))])[0]
