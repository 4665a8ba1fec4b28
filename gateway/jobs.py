"""Work of the gateway that must be done whatever process lives. Every job may run twice, late, or at once."""

from celery import shared_task

from gateway.sessions import writing


@shared_task(name="gateway.forget_sessions", ignore_result=True)
def forget_sessions(kept_days: int) -> int:
    """Delete sessions to which nothing was added for that long; how many rows went."""
    return writing.forget_old(kept_days)
