"""The jobs of webhooks. Every job may run twice, late, or several times at once."""

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
    """Send the deliveries that are due; returns the number of attempts."""
    return Sender(WebhookOutbox(client()), stopping).run()


@job("webhooks.retain")
def retain(deliveries_kept_days: int) -> int:
    """Delete older deliveries that have ended, or whose next attempt is a day overdue; returns their number.

    An attempt stays overdue while the owner is suspended, or if a dead receiver has more rows than attempts.
    """
    now = db_now()
    old = Delivery.objects.filter(queued_at__lt=now - timedelta(days=deliveries_kept_days))
    over = old.exclude(next_attempt_at__gte=now - OVERDUE)
    return batches.delete(over)
