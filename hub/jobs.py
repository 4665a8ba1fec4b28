"""The sweep, as an operator wants it: done, and known to be done."""

from celery import shared_task

from agents import jobs
from hub.models import JobRun
from kit.clock import db_now


@shared_task(name="hub.sweep", ignore_result=True)
def sweep() -> dict[str, int]:
    """Reap, then note when; counts of what was reaped. Twice at once is fine."""
    counts = jobs.reap()
    JobRun.objects.update_or_create(name=JobRun.SWEEP, defaults={"ended_at": db_now()})
    return counts
