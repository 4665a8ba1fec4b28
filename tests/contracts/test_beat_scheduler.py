"""Beat when the clock of its host is set back."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from celery import Celery, current_app

from hub.beat_scheduler import Scheduler

WITHIN_S, LOOKS_EVERY_S = 20.0, 0.02
DAY = timedelta(days=1)
NAMES = {"often", "other"}


class SetClock(Celery):
    """An application on a host whose clock is `ahead` of the true time."""

    ahead = DAY

    def now(self) -> datetime:
        """See `Celery.now`."""
        moment: datetime = super().now()
        return moment + self.ahead


@pytest.fixture
def app() -> Iterator[SetClock]:
    """The current application, whose clock Celery's schedules read."""
    before = current_app._get_current_object()
    app = SetClock("clocks", broker="memory://")
    yield app
    before.set_current()


def ran(app: Celery, scheduler: Scheduler) -> set[str]:
    """The names of the jobs that the scheduler calls, until it has called all of them."""
    called: set[str] = set()
    until = time.monotonic() + WITHIN_S
    with app.connection_for_read() as connection, connection.SimpleQueue("celery") as queue:
        queue.clear()
        while NAMES - called and time.monotonic() < until:
            scheduler.tick()
            time.sleep(LOOKS_EVERY_S)
            while queue.qsize():
                called.add(queue.get_nowait().headers["task"])
    return called


def test_all_jobs_go_on_after_the_clock_was_set_back_by_a_day(tmp_path: Path, app: SetClock) -> None:
    """Also after a restart, when the times of the day ahead are in beat's file."""
    app.conf.beat_schedule = {name: {"task": name, "schedule": 0.5} for name in NAMES}
    scheduler = Scheduler(app=app, schedule_filename=str(tmp_path / "schedule"), max_interval=1)
    assert ran(app, scheduler) == NAMES
    app.ahead = timedelta(0)
    assert ran(app, scheduler) == NAMES
    app.ahead = DAY
    assert ran(app, scheduler) == NAMES
    scheduler.close()
    app.ahead = timedelta(0)
    restarted = Scheduler(app=app, schedule_filename=str(tmp_path / "schedule"), max_interval=1)
    assert ran(app, restarted) == NAMES
    restarted.close()
