"""The jobs of `evaluations`. Every job may run late, twice, or in two processes at once."""

from evaluations.service import runs
from kit.jobs import job
from kit.sql import advisory_lock


@job("evaluations.start_due")
def start_due() -> int:
    """Start the runs of saved questions that schedules and new cards demand; returns their number."""
    with advisory_lock("starting evaluations") as is_alone:
        return runs.start_due() if is_alone else 0


@job("evaluations.forget_runs")
def forget_runs(kept_days: int) -> int:
    """Delete old runs of saved questions; returns their number."""
    return runs.forget_old(kept_days)
