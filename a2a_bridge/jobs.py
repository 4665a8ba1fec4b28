"""Work of the bridge that must be done whatever process lives. Every job may run twice, or late."""

from celery import shared_task

from a2a_bridge import idempotency


@shared_task(name="a2a.forget_keys", ignore_result=True)
def forget_keys() -> int:
    """Delete what is kept of sends with an Idempotency-Key, 24 h after; how many went."""
    return idempotency.forget_old()
