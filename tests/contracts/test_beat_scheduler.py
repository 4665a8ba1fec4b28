"""Beat after the clock of its host was set back."""

import time
from datetime import timedelta
from pathlib import Path

from celery import Celery

from hub.beat_scheduler import Scheduler

WITHIN_S = 20.0
DAY = timedelta(days=1)
NAMES = {"often", "other"}


def scheduler_of(app: Celery, file: Path) -> Scheduler:
    return Scheduler(app=app, schedule_filename=str(file), max_interval=1)


def test_jobs_that_ran_in_the_future_run_again_as_often_as_planned(tmp_path: Path) -> None:
    app = Celery("clocks", broker="memory://", set_as_current=False)
    app.conf.beat_schedule = {name: {"task": name, "schedule": 0.5} for name in NAMES}
    ahead = scheduler_of(app, tmp_path / "schedule")
    for name in NAMES:
        ahead.schedule[name].last_run_at = app.now() + DAY
    ahead.close()
    ran: set[str] = set()
    scheduler = scheduler_of(app, tmp_path / "schedule")
    assert all(scheduler.schedule[name].last_run_at > app.now() for name in NAMES)
    until = time.monotonic() + WITHIN_S
    with app.connection_for_read() as connection, connection.SimpleQueue("celery") as queue:
        while NAMES - ran and time.monotonic() < until:
            time.sleep(min(max(scheduler.tick(), 0), 0.1))
            while queue.qsize():
                ran.add(queue.get_nowait().headers["task"])
    scheduler.close()
    assert ran >= NAMES
