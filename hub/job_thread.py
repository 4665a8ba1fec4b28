"""Threads for what no request waits for: jobs, where no Celery runs, and calls to it where it does."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils.module_loading import autodiscover_modules
from kombu.exceptions import OperationalError

from a2a_bridge import jobs as bridge_jobs
from a2a_bridge.pushes.missed_ends import sweep as sweep_pushes
from a2a_bridge.pushes.queue import PUSHES
from hub.celery import app
from kit.durations import seconds
from webhooks import jobs as webhook_jobs
from webhooks.sending import Sender, client

logger = logging.getLogger(__name__)

EVERY_S = seconds(5.0, at_least_s=1.0)
PAUSE_S = 0.1  # what is woken a thousand times a second still runs ten times
CALL_EXPIRES_S = 10
JOIN_WITHIN_S = seconds(10.0, at_least_s=2.5)
SENDING = {"deliver", "push"}  # jobs whose work the threads of deliveries and pushes do as soon as they are woken

Work = Callable[[threading.Event], object]


class JobThread:
    """Runs its work every so many seconds, sooner when woken, until stopped; the work may look whether it is."""

    def __init__(self, name: str, work: Work, *, every_s: float | None = EVERY_S) -> None:
        self._work = work
        self._every_s = every_s
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Run soon; from any thread, at no cost."""
        self._woken.set()

    def stop(self, *, within_s: float = JOIN_WITHIN_S) -> None:
        """End after the work at hand; what takes longer is left to itself, and ends with the process."""
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(within_s)
        if self._thread.is_alive():
            logger.error("job.unfinished", extra={"job": self._thread.name})

    def _run(self) -> None:
        while True:
            self._woken.wait(self._every_s)
            if self._stopped.wait(PAUSE_S):
                break
            self._woken.clear()  # before the work: what comes meanwhile wakes it again
            try:
                self._work(self._stopped)
            except Exception:
                logger.exception("job.failed", extra={"job": self._thread.name})
                # Perhaps it is the connection that failed: the next run gets a new one.
                connection.close()
        connection.close()


class Housekeeping:
    """Runs what is due of some jobs of the schedule; one that fails keeps no other from its turn."""

    def __init__(self, names: Iterable[str]) -> None:
        self._due_at = dict.fromkeys(names, time.monotonic())

    def __call__(self, stopping: threading.Event) -> None:
        for name, due_at in self._due_at.items():
            if time.monotonic() >= due_at and not stopping.is_set():
                job: dict[str, Any] = settings.CELERY_BEAT_SCHEDULE[name]
                self._due_at[name] = time.monotonic() + job["schedule"]
                _run(job["task"], job.get("args", ()))


def make_job_threads() -> list[JobThread]:
    """The jobs of the embedded hub: those that beat sends to Celery's worker elsewhere, in the one process.

    The reaper has a thread of its own: what goes in batches may take long.
    """
    autodiscover_modules("jobs")  # as the worker finds them
    others = [name for name in settings.CELERY_BEAT_SCHEDULE if name != "sweep" and name not in SENDING]
    return [JobThread("jobs", Housekeeping(["sweep"])), JobThread("housekeeping", Housekeeping(others))]


def make_delivery_thread() -> JobThread:
    """Sends webhook deliveries: itself in the embedded hub, else by calling a Celery worker when woken."""
    if settings.IS_EMBEDDED:
        return JobThread("deliveries", lambda stopping: Sender(client(), stopping).run())
    return JobThread("deliveries", _calling(webhook_jobs.deliver_due), every_s=None)


def pusher() -> JobThread:
    """The same for push notifications of tasks; in the embedded hub it looks for lost ends first."""
    if settings.IS_EMBEDDED:
        return JobThread("pushes", _push)
    return JobThread("pushes", _calling(bridge_jobs.push_due), every_s=None)


def _run(task: str, args: Iterable[Any]) -> None:
    try:
        app.tasks[task](*args)
    except Exception:
        logger.exception("job.failed", extra={"job": task})
        connection.close()


def _push(stopping: threading.Event) -> None:
    sweep_pushes()
    Sender(client(), stopping, PUSHES).run()


def _calling(job: Any) -> Work:
    """Calls a worker. A lost call costs seconds: the schedule finds what is due."""

    def call(stopping: threading.Event) -> None:
        try:
            job.apply_async(expires=CALL_EXPIRES_S, retry=False)
        except OperationalError as failure:
            logger.warning("worker.not_called", extra={"failure": type(failure).__name__})

    return call
