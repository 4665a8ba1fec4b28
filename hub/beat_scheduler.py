"""The scheduler of Celery's beat, for hosts whose clock may be set back."""

from typing import Any

from celery.beat import PersistentScheduler


class Scheduler(PersistentScheduler):
    """Celery's scheduler, which a clock that is set back does not delay.

    Celery's own compares times of the host's clock: set back by a day, it would run no job for a day. Here an
    entry whose last run is in the future counts as run now, also if an earlier beat wrote it into the file.
    """

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Run the entry that has been due longest; return the seconds until the next call."""
        now = self.app.now()
        for entry in self.schedule.values():
            if entry.last_run_at is not None and entry.last_run_at > now:
                entry.last_run_at = now
                self._heap = None  # ordered by the old clock: `tick` makes it anew
        seconds: float = super().tick(*args, **kwargs)
        return seconds
