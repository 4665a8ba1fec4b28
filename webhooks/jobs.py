"""Work that must be done whatever process lives. Every job may run twice, late, or several at once."""

from datetime import timedelta
from threading import Event

from kit import batches
from kit.clock import db_now
from kit.jobs import job
from kit.outbox import Sender
from webhooks.models import Delivery
from webhooks.service.sending import WebhookOutbox, client

OVERDUE = timedelta(days=1)


@job("webhooks.deliver_due")
def deliver_due(stopping: Event | None = None) -> int:
    """Send what is due; how many attempts."""
    return Sender(WebhookOutbox(client()), stopping).run()


@job("webhooks.retain")
def retain(deliveries_kept_days: int) -> int:
    """Delete deliveries older than that which ended, or whose turn did not come for a day; how many went.

    A last attempt does not come while the owner is suspended, or for a dead receiver with more rows than attempts.
    """
    now = db_now()
    old = Delivery.objects.filter(queued_at__lt=now - timedelta(days=deliveries_kept_days))
    over = old.exclude(next_attempt_at__gte=now - OVERDUE)
    return batches.delete(over)
