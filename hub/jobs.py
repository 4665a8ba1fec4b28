"""The hub's own jobs, in any process: sweeps whose time is recorded, and the erasure of closed accounts."""

from datetime import timedelta

from django.contrib.admin.models import LogEntry

from agents import jobs
from hub.account_data import erasure
from hub.models import JobRun
from kit import batches
from kit.clock import db_now
from kit.jobs import job


@job("hub.sweep")
def sweep() -> dict[str, int]:
    """Reap, and record the time; returns counts of what was reaped. The job may run twice at once."""
    counts = jobs.reap()
    JobRun.objects.update_or_create(name=JobRun.SWEEP, defaults={"ended_at": db_now()})
    return counts


@job("hub.erase_closed")
def erase_closed() -> int:
    """Erase the rest of closed accounts; returns the number of accounts. The job may run twice, or late."""
    return erasure.erase_closed()


@job("hub.forget_acts")
def forget_acts(acts_kept_days: int) -> int:
    """Delete older entries of the admin's log; returns their number. 0 days: none, the log is kept for good."""
    if not acts_kept_days:
        return 0
    return batches.delete(LogEntry.objects.filter(action_time__lt=db_now() - timedelta(days=acts_kept_days)))
