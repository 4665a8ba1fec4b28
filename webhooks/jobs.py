"""Work that must be done whatever process lives. Every job may run twice, late, or several at once."""

from datetime import timedelta

from kit import batches
from kit.clock import db_now
from kit.jobs import job
from webhooks.models import Delivery
from webhooks.sending import Sender, client

OVERDUE = timedelta(days=1)


@job("webhooks.deliver_due")
def deliver_due() -> int:
    """Send what is due; how many attempts."""
    return Sender(client()).run()


@job("webhooks.retain")
def retain(deliveries_kept_days: int) -> int:
    """Delete deliveries older than that which ended, or whose turn did not come for a day; how many went.

    It does not come while the owner is suspended, or when a dead receiver has more than it can be tried with.
    """
    now = db_now()
    old = Delivery.objects.filter(queued_at__lt=now - timedelta(days=deliveries_kept_days))
    over = old.exclude(next_attempt_at__gte=now - OVERDUE)
    return batches.delete(over)
