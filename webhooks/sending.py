"""The sender: whatever is due goes out, many at once, none of them in a transaction."""

import logging
import threading
import time
from queue import Empty, SimpleQueue

from django.db import OperationalError, connection, transaction

from kit.async_db import release_before_waiting
from kit.durations import seconds
from kit.safe_http import NotSent, Rules, SafeHttp, Unanswered
from webhooks.leases import Leased, Outcome, SendLimits, lease, settle
from webhooks.queues import Queue
from webhooks.settings import get_settings
from webhooks.subscriptions import WEBHOOKS

logger = logging.getLogger(__name__)

RUN_FOR_S = seconds(10.0)
STOP_WITHIN_S = 2.0
SETTLE_TRIES = 5
SETTLE_AGAIN_S = 0.5
LOOK_EVERY_S = 0.5


def client() -> SafeHttp:
    """How receivers are reached, by the operator's settings."""
    settings = get_settings()
    return SafeHttp(Rules(ports=settings.webhook_ports, allows_private=settings.webhook_allow_private))


def check_url(url: str) -> None:
    """Look at a receiver's URL as sending would now. It may take seconds, in which no database connection is held.

    Raises:
        NotSent: it is not allowed.
    """
    release_before_waiting()
    client().check(url)


def attempt(http: SafeHttp, leased: Leased) -> Outcome:
    """Send one delivery once."""
    request = leased.request
    if request is None:
        return Outcome(None, leased.queue.unreadable)
    try:
        answer = http.send("POST", request.url, headers=request.headers, body=request.body)
    except (NotSent, Unanswered) as failure:
        return Outcome(None, str(failure))
    return Outcome(answer.status)


class Sender:
    """Takes what is due for 10 s. One thread talks to the database, the others send.

    What is still under way then is ended by its own thread: nobody waits for a receiver that hangs, and whoever
    runs next takes what is due. When it must stop, that stays leased, and is sent again by whoever comes next.
    """

    def __init__(self, http: SafeHttp, stopping: threading.Event | None = None, queue: Queue = WEBHOOKS) -> None:
        self._http = http
        self._deliveries = queue
        self._stopping = stopping or threading.Event()
        self._limits = SendLimits(each_receiver=queue.each_receiver)
        self._under_way = 0
        self._ended: SimpleQueue[tuple[Leased, Outcome]] = SimpleQueue()
        self._handing_over = threading.Lock()
        self._has_left = False

    def run(self) -> int:
        """How many attempts were made and written down; once for each sender."""
        count = 0
        leave_at = time.monotonic() + RUN_FOR_S
        while True:
            if self._stopping.is_set():
                leave_at = min(leave_at, time.monotonic() + STOP_WITHIN_S)
            else:
                self._start_due()
            if not self._under_way or time.monotonic() > leave_at:
                return count + self._leave()
            count += self._settle_next()

    def _leave(self) -> int:
        """From now on whoever ends writes it down alone; how many had ended before."""
        with self._handing_over:
            self._has_left = True
        return self._settle_next() if not self._ended.empty() else 0

    def _start_due(self) -> None:
        for leased in lease(self._limits, self._deliveries):
            self._under_way += 1
            threading.Thread(target=self._send, args=(leased,), name="webhook", daemon=True).start()

    def _send(self, leased: Leased) -> None:
        try:
            outcome = attempt(self._http, leased)
        except Exception:
            logger.exception("webhook.failed", extra={"delivery": str(leased.delivery)})
            outcome = Outcome(None, "the hub could not send it")
        # Under the lock: between a look at `_has_left` and the `put`, `_leave` would miss this one.
        with self._handing_over:
            if not self._has_left:
                self._ended.put((leased, outcome))
                return
        self._settle_alone(leased, outcome)

    def _settle_alone(self, leased: Leased, outcome: Outcome) -> None:
        """On a connection of this thread's own; when that fails the lease runs out, and it is sent again."""
        for _ in range(SETTLE_TRIES):
            try:
                settle(leased, outcome)
                return
            except OperationalError:  # a Celery child closes its pool after each job, this thread may outlast it
                logger.warning("webhook.settle_failed", extra={"delivery": str(leased.delivery)})
            # Each thread has a connection of its own, which Django does not close when the thread ends.
            finally:
                connection.close()
            time.sleep(SETTLE_AGAIN_S)

    def _settle_next(self) -> int:
        """Write down what has ended by now, in one transaction; how many that were.

        In the order of receivers, whose rows are written too: another sender may be at the same.
        """
        ended = sorted(self._ended_by_now(), key=lambda one: one[0].receiver_id)
        try:
            with transaction.atomic():
                for leased, outcome in ended:
                    settle(leased, outcome)
        except OperationalError:  # one of these webhooks is just being deleted: the others are not at fault
            for leased, outcome in ended:
                self._settle_alone(leased, outcome)
        for leased, _ in ended:
            self._under_way -= 1
            self._limits.leave(leased.receiver_id, leased.owner_id)
        return len(ended)

    def _ended_by_now(self) -> list[tuple[Leased, Outcome]]:
        ended: list[tuple[Leased, Outcome]] = []
        try:
            ended.append(self._ended.get(timeout=LOOK_EVERY_S))
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            return ended
