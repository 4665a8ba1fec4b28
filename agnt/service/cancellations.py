"""Cancellations that venues are owed: of orders that are no booking, and of bookings that were cancelled.

An order and its booking have one id, which the venue gets with the order. While the venue is asked, a row stands
for the reservation that it may make (`agnt.models.Cancellation`). An outbox sends what is due: it runs in the
processes of the hub, as those have the ways to the venues' agents.
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError
from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import QuerySet

from accounts.models import User
from agnt import settings
from agnt.limits import UNSETTLED_ORDERS
from agnt.models import Booking, Cancellation, Venue
from agnt.service.keys import FoundKey
from agnt.service.networks import AskVenue, NetworkRef, VenueAsk, build_hop_name
from agnt.wire.envelope import Envelope
from agnt.wire.payloads import AgntBookingOrder, AgntConfirmOrder
from clawbridge.agnt.fields import CANCEL, MAX_TTL_MS, EnvelopeRefused, ErrorCode, Json
from kit.clock import db_now, iso
from kit.durations import seconds
from kit.outbox import AttemptEnd, AttemptResult, Outbox, Sender, SendLimits

State, Reason = Cancellation.State, Cancellation.Reason
SHOWN = [State.OWED.value, State.TOLD.value, State.GIVEN_UP.value]  # shown to owners
KEPT = timedelta(days=7)  # cancellations that have ended
TOO_MANY = "the venue has not answered many orders of yours: try again later"
# A caller that got no answer may send its event again: while the venue was told nothing, that is the same order.
REPEATED_WITHIN = timedelta(seconds=seconds(30.0))
REPEATED_FOR = timedelta(minutes=10)  # else a caller that goes on and on would postpone the cancellation for ever


WITHIN_S = MAX_TTL_MS / 1000
LATE_S = 2.0  # beyond the deadline of an ask, for the loop to say so
RETRY_AFTER_S = (*map(seconds, (10, 30, 60, 300, 900, 1800)), *[3600.0] * 72)
MAX_ERROR_CHARS = 300
EACH_NETWORK = 2
LONGEST = timedelta(days=3)


def hold_order(
    key: FoundKey, envelope: Envelope, venue: Venue, order: AgntConfirmOrder, until: datetime
) -> tuple[Cancellation, bool]:
    """Note that a venue will be asked about an order. Call it in the transaction that claims the event.

    Also whether it was asked before, so that it may hold a reservation whatever it answers now.

    An event that comes again is the same order for REPEATED_FOR, unless it asks for something else, or the venue
    was told to cancel that. Else it is a new order, with its own timestamp: the venue may repeat its answer to the
    first. `until`: when the event is free.

    Raises:
        EnvelopeRefused: `rate_limited`: too many orders of this customer at the venue have no certain end.
    """
    sender, _, timestamp = envelope.event
    event = {"network_id": key.network_id, "customer": key.customer, "sender": sender, "timestamp": timestamp}
    due = until + REPEATED_WITHIN
    asked_at = timestamp
    reservation = describe_order(order)
    of_event = Cancellation.objects.select_for_update().filter(**event).order_by("-pk")
    if timestamp and (last := of_event.first()):
        is_same = last.venue_id == venue.pk and last.reservation == reservation
        is_late = last.created_at < db_now() - REPEATED_FOR
        if is_same and not is_late and last.attempts == 0 and last.state in Cancellation.UNSETTLED:
            Cancellation.objects.filter(pk=last.pk).update(state=State.ASKING, next_attempt_at=due)
            return last, True
        asked_at = iso(db_now())
    unsettled = Cancellation.objects.filter(venue=venue, customer=key.customer, state__in=Cancellation.UNSETTLED)
    if unsettled[: UNSETTLED_ORDERS.most].count() == UNSETTLED_ORDERS.most:
        raise EnvelopeRefused(ErrorCode.RATE_LIMITED, TOO_MANY, retry_after_s=REPEATED_WITHIN.total_seconds())
    row = {"asked_at": asked_at, "reservation": reservation, "next_attempt_at": due}
    return Cancellation.objects.create(venue=venue, **event, **row), False


def release_order(public_id: UUID) -> bool:
    """Delete the row of an order that the venue accepted in time, or has no reservation for; True if the row still
    existed.
    """
    held = Cancellation.objects.filter(public_id=public_id, attempts=0, state__in=Cancellation.UNSETTLED)
    return bool(held.delete()[0])


def owe_order(public_id: UUID, reason: Cancellation.Reason) -> None:
    """Have the venue told to cancel an order that is no booking.

    Not at once: its caller may send the event again; and the venue may still work on the order, and would answer
    that it has no such booking just before it reserves.
    """
    held = Cancellation.objects.filter(public_id=public_id, attempts=0, state=State.ASKING)
    held.update(state=State.OWED, reason=reason, next_attempt_at=db_now() + REPEATED_WITHIN)


def owe_booking(booking: Booking, reason: Cancellation.Reason) -> None:
    """Have a venue that is asked told that a booking is cancelled. Call it in the transaction that cancels it."""
    if not (booking.venue_reply or booking.venue.is_asked):
        return
    order = describe_order(booking)
    Cancellation.objects.create(
        public_id=booking.public_id,
        network_id=booking.network_id,
        venue=booking.venue,
        reservation=order | ({"venue_booking_id": booking.venue_booking_id} if booking.venue_booking_id else {}),
        reason=reason,
        state=State.OWED,
        next_attempt_at=db_now(),
    )


def describe_order(order: AgntConfirmOrder | Booking) -> Json:
    """The fields of an order that are given, by which a venue finds it."""
    return {name: value for name in ("slot_id", "slot_time", "party_size") if (value := getattr(order, name))}


def list_cancellations(owner: User) -> QuerySet[Cancellation]:
    """The cancellations that the venues of an owner's network got, or will get, with their venues."""
    own = Cancellation.objects.filter(network__owner=owner, state__in=SHOWN)
    return own.select_related("venue")


def send_again(cancellation: Cancellation) -> bool:
    """Queue a cancellation again that was given up; returns False if the cancellation was not given up."""
    given_up = Cancellation.objects.filter(pk=cancellation.pk, state=State.GIVEN_UP)
    return bool(given_up.update(state=State.OWED, attempts=1, next_attempt_at=db_now(), ended_at=None))


def find_old() -> QuerySet[Cancellation]:
    """The cancellations that ended so long ago that they are kept no longer."""
    return Cancellation.objects.filter(ended_at__lt=db_now() - KEPT)


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

    def __init__(self, ask_venue: AskVenue, loop: asyncio.AbstractEventLoop) -> None:
        self._ask_venue = ask_venue
        self._loop = loop

    def find_sendable(self) -> QuerySet[Cancellation]:
        """See `Outbox`. If a cancellation is still `ASKING` when it is due, the process that asked the venue has
        died.
        """
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
        ask = self._ask_venue(prepared, time.monotonic() + WITHIN_S)
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
    """The work of a thread of this process: sends the due cancellations. Call `start` before the thread starts."""

    def __init__(self, ask_venue: AskVenue) -> None:
        self._ask_venue = ask_venue
        self._loop: asyncio.AbstractEventLoop | None = None
        self._limits = SendLimits(CancellationOutbox)  # a venue may answer after a `Sender` has left

    def start(self) -> None:
        """Use the running event loop for the asks of venues."""
        self._loop = asyncio.get_running_loop()

    def __call__(self, stopping: threading.Event) -> int:
        """Send for 5 s at most; returns the number of attempts that ended."""
        if self._loop is None:
            return 0
        return Sender(CancellationOutbox(self._ask_venue, self._loop), stopping, self._limits).run()
