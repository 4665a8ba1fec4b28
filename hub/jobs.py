"""The jobs that the hub runs by itself in any process: sweeps that are known to be done, and accounts that go."""

from agents import jobs
from hub.account_data import erasure
from hub.models import JobRun
from kit.clock import db_now
from kit.jobs import job


@job("hub.sweep")
def sweep() -> dict[str, int]:
    """Reap, then note when; counts of what was reaped. Twice at once is fine."""
    counts = jobs.reap()
    JobRun.objects.update_or_create(name=JobRun.SWEEP, defaults={"ended_at": db_now()})
    return counts


@job("hub.erase_closed")
def erase_closed() -> int:
    """Erase what closed accounts left; how many accounts. The job may run twice, or late."""
    return erasure.erase_closed()
