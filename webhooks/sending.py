"""The sender: whatever is due goes out, many at once, none of them in a transaction."""

import logging
import threading
import time
from queue import Empty, SimpleQueue

from django.conf import settings

from kit.safe_http import NotSent, Rules, SafeHttp, Unanswered
from webhooks.leases import Leased, Outcome, lease, settle
from webhooks.places import Places
from webhooks.queues import Queue
from webhooks.subscriptions import WEBHOOKS

logger = logging.getLogger(__name__)

RUN_FOR_S = 10.0
LAST_WORDS_S = 12.0  # the client gives up after 10
STOP_WITHIN_S = 2.0
LOOK_EVERY_S = 0.5


def client() -> SafeHttp:
    """How receivers are reached, by the operator's settings."""
    ports = frozenset(settings.WEBHOOK_PORTS)
    return SafeHttp(Rules(ports=ports, allows_private=settings.WEBHOOK_ALLOW_PRIVATE))


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
    """Takes what is due for 10 s, then ends what it began. One thread talks to the database, the others send.

    What is under way when it must stop stays leased, and is sent again by whoever comes next.
    """

    def __init__(self, http: SafeHttp, stopping: threading.Event | None = None, queue: Queue = WEBHOOKS) -> None:
        self._http = http
        self._deliveries = queue
        self._stopping = stopping or threading.Event()
        self._places = Places(each_receiver=queue.each_receiver)
        self._under_way = 0
        self._ended: SimpleQueue[tuple[Leased, Outcome]] = SimpleQueue()

    def run(self) -> int:
        """How many attempts were made and written down."""
        count = 0
        take_until = time.monotonic() + RUN_FOR_S
        leave_at = take_until + LAST_WORDS_S
        while True:
            now = time.monotonic()
            if self._stopping.is_set():
                leave_at = min(leave_at, now + STOP_WITHIN_S)
            elif now < take_until:
                self._start_due()
            if not self._under_way or now > leave_at:
                return count
            count += self._settle_next()

    def _start_due(self) -> None:
        for leased in lease(self._places, self._deliveries):
            self._under_way += 1
            threading.Thread(target=self._send, args=(leased,), name="webhook", daemon=True).start()

    def _send(self, leased: Leased) -> None:
        try:
            outcome = attempt(self._http, leased)
        except Exception:
            logger.exception("webhook.failed", extra={"delivery": str(leased.delivery)})
            outcome = Outcome(None, "the hub could not send it")
        self._ended.put((leased, outcome))

    def _settle_next(self) -> int:
        try:
            leased, outcome = self._ended.get(timeout=LOOK_EVERY_S)
        except Empty:
            return 0
        self._under_way -= 1
        self._places.leave(leased.receiver_id, leased.owner_id)
        settle(leased, outcome)
        return 1
