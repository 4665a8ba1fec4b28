"""Work that no request waits for: jobs without Celery, calls to Celery, and messages to other processes."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils.module_loading import autodiscover_modules

from agents.core.post import Handler, Post
from agents.transcript.announcements import AddressedMessage
from kit.durations import seconds
from kit.jobs import JOBS

logger = logging.getLogger(__name__)

EVERY_S = seconds(5.0, at_least_s=1.0)
QUIET_EVERY_S = seconds(15.0, at_least_s=3.0)
QUIET_AFTER_S = seconds(60.0, at_least_s=10.0)
PAUSE_S = 0.1  # a thread that is woken a thousand times a second still runs ten times
JOIN_WITHIN_S = seconds(10.0, at_least_s=2.5)
# The threads of deliveries and pushes do the work of these jobs as soon as they are woken.
SENDING = {"deliver", "push"}

MAX_WAITING = 10_000  # messages of a process

Work = Callable[[threading.Event], object]  # returns a true value when it did anything


class JobThread:
    """Runs its work regularly, sooner when woken, until stopped; the work gets the event that says so.

    `is_regular`: every EVERY_S, and every QUIET_EVERY_S when no run has done anything for QUIET_AFTER_S; else only
    when woken. This process wakes the thread when it queues work; a regular run finds work that became due, and
    work that commands queued.
    """

    def __init__(self, name: str, work: Work, *, is_regular: bool = True) -> None:
        self._work = work
        self._is_regular = is_regular
        self._quiet_at = time.monotonic() + EVERY_S
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Run the work soon. Any thread may call this; the call costs nearly nothing."""
        self._woken.set()

    def stop(self, *, within_s: float = JOIN_WITHIN_S) -> None:
        """Stop after the work under way. Work that takes too long is not waited for, and ends with the process."""
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(within_s)
        if self._thread.is_alive():
            logger.error("job.unfinished", extra={"job": self._thread.name})

    @property
    def wait_s(self) -> float | None:
        """The seconds that the thread waits if it is not woken; None: until it is woken."""
        if not self._is_regular:
            return None
        return EVERY_S if time.monotonic() < self._quiet_at else QUIET_EVERY_S

    def _run(self) -> None:
        while True:
            self._woken.wait(self.wait_s)
            if self._stopped.wait(PAUSE_S):
                break
            self._woken.clear()  # cleared before the work: a wake-up during the work starts another run
            try:
                if self._work(self._stopped):
                    self._quiet_at = time.monotonic() + QUIET_AFTER_S
            except Exception:
                logger.exception("job.failed", extra={"job": self._thread.name})
                # The connection may have failed: the next run gets a new one.
                connection.close()
        connection.close()


class Housekeeping:
    """Runs those jobs of a part of the schedule that are due; a job that fails does not stop the others."""

    def __init__(self, names: Iterable[str]) -> None:
        self._due_at = dict.fromkeys(names, time.monotonic())

    def __call__(self, stopping: threading.Event) -> bool:
        """Run the jobs that are due; True if any of them did anything."""
        has_done = False
        for name, due_at in self._due_at.items():
            if time.monotonic() >= due_at and not stopping.is_set():
                job: dict[str, Any] = settings.CELERY_BEAT_SCHEDULE[name]
                self._due_at[name] = time.monotonic() + job["schedule"]
                has_done |= _run(job["task"], job.get("args", ()))
        return has_done


def make_job_threads() -> list[JobThread]:
    """The threads that run the schedule of an embedded hub; in other hubs Celery's beat sends these jobs to a
    worker.

    The sweep has a thread of its own, because jobs that work in batches may take long.
    """
    autodiscover_modules("jobs")  # imports each app's jobs, as Celery's worker does
    others = [name for name in settings.CELERY_BEAT_SCHEDULE if name != "sweep" and name not in SENDING]
    return [JobThread("jobs", Housekeeping(["sweep"])), JobThread("housekeeping", Housekeeping(others))]


def make_sender_thread(name: str, job: str) -> JobThread:
    """The thread that sends the rows of an outbox: by this job in an embedded hub, else by calling a Celery
    worker.
    """
    if not settings.IS_EMBEDDED:
        return JobThread(name, _calling(job), is_regular=False)
    autodiscover_modules("jobs")
    return JobThread(name, JOBS[job])


def _run(task: str, args: Iterable[Any]) -> bool:
    """Run a job; True if the job did anything. Jobs return the number of things done, or such numbers by name."""
    try:
        done: Any = JOBS[task](*args)
    except Exception:
        logger.exception("job.failed", extra={"job": task})
        connection.close()
        return False
    return any(done.values()) if isinstance(done, dict) else bool(done)


def _calling(job: str) -> Work:
    """A function that calls a worker for a job. A lost call costs seconds: the schedule runs the job anyway."""
    # Imported here, because the module imports Celery, which is large.
    call_worker: Callable[[str], object] = import_module("hub.distributed").call_worker
    return lambda stopping: call_worker(job)


class MessageSender:
    """Sends messages from any thread of this process to other processes, in order, by one queue and one task.

    Messages beyond the size of the queue are dropped, which loses no rows.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[AddressedMessage] = asyncio.Queue(MAX_WAITING)

    def address(self, process_id: str, here: Handler, post: Post) -> None:
        """Set this process's handler and the post to other processes."""
        self._me, self._here, self._post = process_id, here, post

    def queue_messages(self, addressed: Sequence[AddressedMessage]) -> None:
        """Queue messages from any thread; does nothing before the process has started or after it has ended."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._put, addressed)

    async def run(self) -> None:
        """Send messages until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            process_id, message = await self._queue.get()
            try:
                if process_id == self._me:
                    await self._here(message)
                else:
                    await self._post.send(process_id, message)
            except Exception:
                logger.exception("courier.failed", extra={"kind": type(message).__name__})
            await asyncio.sleep(0)  # lets sockets send the messages they have before they get more

    def _put(self, addressed: Sequence[AddressedMessage]) -> None:
        for one in addressed:
            if self._queue.full():
                logger.warning("courier.full")
                return
            self._queue.put_nowait(one)
