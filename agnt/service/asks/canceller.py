"""Tells venues what they are to cancel: the outbox of cancellations, which asks venues as envelopes do.

It runs in the processes of the hub, as those have the ways to the venues' agents.
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db.models import QuerySet

from agnt import settings
from agnt.models import Cancellation
from agnt.service.keys import NetworkRef
from agnt.service.networks import build_hop_name
from agnt.service.ports import VenueAsk, VenueAsks
from agnt.wire.envelope import Envelope
from agnt.wire.payloads import AgntBookingOrder
from clawbridge.agnt.errors import EnvelopeRefused
from clawbridge.agnt.fields import CANCEL, MAX_TTL_MS
from kit.clock import iso
from kit.durations import seconds
from kit.outbox import AttemptEnd, AttemptResult, Outbox, Sender

State = Cancellation.State
WITHIN_S = MAX_TTL_MS / 1000
LATE_S = 2.0  # beyond the deadline of an ask, for the loop to say so
RETRY_AFTER_S = (*map(seconds, (10, 30, 60, 300, 900, 1800)), *[3600.0] * 72)
MAX_ERROR_CHARS = 300
EACH_NETWORK = 2
LONGEST = timedelta(days=3)


class CancellationOutbox(Outbox):
    """The cancellations of all networks: each is sent until its venue acknowledges it, for three days at most.

    `loop`: in which venues are asked.
    """

    name = "cancellations"
    rows = Cancellation
    receiver = "venue_id"
    at_once = 32
    shares: ClassVar[Mapping[str, int]] = {"venue_id": 1, "network_id": EACH_NETWORK}
    retry_after_s = RETRY_AFTER_S
    columns_while_sent: ClassVar[Mapping[str, Any]] = {"state": State.OWED}

    def __init__(self, asks: VenueAsks, loop: asyncio.AbstractEventLoop) -> None:
        self._asks = asks
        self._loop = loop

    def find_sendable(self) -> QuerySet[Cancellation]:
        """See `Outbox`. One that is still `ASKING` when it is due has lost its process."""
        rows = Cancellation.objects.filter(state__in=Cancellation.UNSETTLED, network__owner__is_active=True)
        return rows.select_related("venue", "network__owner")

    def prepare(self, row: Cancellation, now: datetime) -> VenueAsk:
        """See `Outbox`."""
        network, booking_id = row.network, str(row.public_id)
        ids = {"booking_id": booking_id, "venue_id": str(row.venue.public_id)}
        return VenueAsk(
            network=NetworkRef(
                network_id=network.pk,
                owner_id=network.owner_id,
                owner_login=network.owner.login,
                service_user_id=network.service_user_id,
            ),
            envelope=Envelope(
                sender=build_hop_name(network.owner.login, settings.PUBLIC_URL),
                intent=CANCEL,
                payload=ids | row.reservation | {"reason": row.get_reason_display()},
                ttl_ms=MAX_TTL_MS,
                timestamp=iso(now),
            ),
            venue=row.venue,
            order=AgntBookingOrder(booking_id=booking_id),
        )

    def send(self, prepared: VenueAsk) -> AttemptResult:
        """See `Outbox`: any reply to a cancellation acknowledges it."""
        ask = self._asks.ask(prepared, time.monotonic() + WITHIN_S)
        asking = asyncio.run_coroutine_threadsafe(ask, self._loop)
        try:
            asking.result(WITHIN_S + LATE_S)
        except EnvelopeRefused as refused:
            return AttemptResult(is_success=False, error=refused.about.get("rule") or str(refused))
        except (TimeoutError, CancelledError):
            asking.cancel()
            return AttemptResult(is_success=False, error="the hub got no answer in time")
        return AttemptResult(is_success=True)

    def store_end(self, leased: QuerySet[Cancellation], end: AttemptEnd) -> int:
        """See `Outbox`."""
        error = end.outcome.error[:MAX_ERROR_CHARS]
        if end.retry_at and end.at - end.row.created_at < LONGEST:
            return leased.update(next_attempt_at=end.retry_at, last_error=error)
        state = State.TOLD if end.outcome.is_success else State.GIVEN_UP
        return leased.update(state=state, next_attempt_at=None, last_error=error, ended_at=end.at)


class Canceller:
    """The work of a thread of this process: sends what is due. `start`: before the thread."""

    def __init__(self, asks: VenueAsks) -> None:
        self._asks = asks
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Ask venues in the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def __call__(self, stopping: threading.Event) -> int:
        """Send for 10 s at most; how many attempts ended."""
        return Sender(CancellationOutbox(self._asks, self._loop), stopping).run() if self._loop else 0
