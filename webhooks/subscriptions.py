"""Webhooks as the sender sees them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from kit.durations import seconds
from webhooks.keyring import Unreadable, unseal
from webhooks.models import Delivery, Sendable, Subscription
from webhooks.places import EACH_SUBSCRIPTION
from webhooks.queues import Request, traced
from webhooks.signing import body_of, headers_of

RETRY_AFTER_S = tuple(map(seconds, (10, 60, 300, 1800, 7200, 21600)))
USER_AGENT = "clawbridge-webhooks"


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
        body = body_of(delivery)
        signed = headers_of(delivery.event_id, body, secrets, now)
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
