"""Bookings: writes confirmed ones with their charge, the owner's changes of their status, and the events of both.

A booking is `pending` until the owner confirms it; a confirmed one ends as completed, cancelled or no-show. A
pending one can be cancelled too. A charge stays, however the booking ends. A confirm leaves the booking pending
and yet queues `booking.confirmed`: `status` in the payload is the truth.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import User
from agnt.models import ApiKey, Booking, Cancellation, UsageEvent, Venue
from agnt.service.cancellations import owe_booking
from agnt.service.keys import FoundKey
from agnt.service.venues.search import describe_venue
from agnt.wire.payloads import AgntConfirmOrder
from agnt.wire.shapes import AgntBooking, AgntBookingState
from clawbridge.agnt.fields import SIGNATURE_KEYS, Json
from clawbridge.agnt.replies import ACCEPTED, SCHEMA, VenueReply, read_reply
from kit.clock import db_now, iso
from kit.ids import read_uuid
from kit.rows import show
from webhooks.service import outbox
from webhooks.service.outbox import OutboxEvent

PRICE_CENTS = 25
MAX_REPLY_CHARS = 16_384
Status = Booking.Status
BOOKING_CONFIRMED = "booking.confirmed"


class StatusRule(NamedTuple):
    """The rule for a new status of a booking: the statuses before it, and the webhook event that it queues."""

    before: tuple[Status, ...]
    event: str


STATUS_RULES: Final[Mapping[Status, StatusRule]] = {
    Status.CONFIRMED: StatusRule((Status.PENDING,), BOOKING_CONFIRMED),
    Status.CANCELLED: StatusRule((Status.PENDING, Status.CONFIRMED), "booking.cancelled"),
    Status.COMPLETED: StatusRule((Status.CONFIRMED,), "booking.completed"),
    Status.NO_SHOW: StatusRule((Status.CONFIRMED,), "booking.no_show"),
}


class StatusRefused(Exception):
    """A booking with this `status` cannot get the wanted one. Nothing was written."""

    def __init__(self, status: str) -> None:
        super().__init__(f"the booking is {status}")
        self.status = status


def record_booking(booking: Booking, owner_id: int, customer: str) -> None:
    """Write a pending booking, its charge, and the deliveries to those who subscribed.

    Call it in the transaction that stores the answer. `owner_id`: of its network. `customer`: who pays.
    """
    booking.save(force_insert=True)
    UsageEvent.objects.create(
        network_id=booking.network_id,
        booking=booking,
        key_id=booking.key_id,
        customer=customer,
        amount_cents=PRICE_CENTS,
        at=booking.created_at,
    )
    # The contract wants `booking.confirmed` of a confirm, although the booking is pending: `status` says so.
    queue_event(owner_id, booking, BOOKING_CONFIRMED)


def make_booking(
    key: FoundKey,
    sender: str,
    venue: Venue,
    order: AgntConfirmOrder,
    now: datetime,
    payload: Json,
    *,
    order_id: UUID | None = None,
) -> Booking:
    """The booking of an order, as the venue confirmed it. `order_id`: the id that a venue that was asked has.

    `payload`: with which the venue accepted; empty: it was not asked.
    """
    reply = read_reply(payload) if payload else VenueReply(status=ACCEPTED[0])
    return Booking(
        public_id=order_id or uuid4(),
        network_id=key.network_id,
        venue=venue,
        key_id=key.key_id,
        sender=sender,
        slot_id=reply.slot_id or order.slot_id,
        slot_time=reply.slot_time or order.slot_time or "",
        party_size=reply.party_size or order.party_size or None,
        user_note=order.user_note,
        venue_booking_id=reply.booking_id,
        venue_reply=_write_reply(payload),
        created_at=now,
        updated_at=now,
    )


def describe_booking(booking: Booking, shape: type[Any] = AgntBooking) -> Json:
    """The result of `booking.confirm`, with the reply of a venue that was asked. Empty fields are left out."""
    reply: Json = json.loads(booking.venue_reply) if booking.venue_reply else {}
    described: Json = show(
        shape,
        booking,
        venue=describe_venue(booking.venue),
        party_size=booking.party_size or "",
        note=reply.get("note", ""),
        venue_reply=reply or "",
        present="",
    )
    return described


def describe_state(booking: Booking) -> Json:
    """The result of `booking.status` and `booking.cancel`: the booking as it is now, and when it was changed."""
    return describe_booking(booking, AgntBookingState)


def find_change(network_id: int, booking_id: str, status: str) -> Json:
    """The state of a booking if its status is no longer this one; else an empty dict."""
    found = Booking.objects.filter(network_id=network_id, public_id=UUID(booking_id)).exclude(status=status)
    now = found.values_list("status", "updated_at").first()
    return {"status": now[0], "updated_at": iso(now[1])} if now else {}


def find_of_caller(key: FoundKey, booking_id: str) -> Booking | None:
    """The booking with this public id that this key made, or a key of its customer then, with its venue."""
    own = Booking.objects.select_related("venue", "network").filter(network_id=key.network_id)
    own = own.filter(Q(key=key.key_id) | Q(usage_event__customer=key.customer))
    return own.filter(public_id=public_id).first() if (public_id := read_uuid(booking_id)) else None


@transaction.atomic
def change_status(
    booking: Booking, status: Status, *, by: Cancellation.Reason = Cancellation.Reason.OWNER
) -> Booking:
    """Give a booking a status, and queue the event of it; the booking as it is then, with its venue.

    A venue that is asked is told when its booking is cancelled. `by`: the cause that its owner reads.
    Of two changes at once the first stands. The same change again, or at once, writes and queues nothing.

    Raises:
        StatusRefused: the booking cannot get that status any more, or not yet.
        ValueError: a booking is never set to that status.
    """
    if status not in STATUS_RULES:
        raise ValueError(f"no booking is set to {status}")
    rule = STATUS_RULES[status]
    before = Booking.objects.filter(pk=booking.pk, status__in=rule.before)
    is_changed = before.update(status=status, updated_at=db_now())
    changed = Booking.objects.select_related("venue").filter(pk=booking.pk).first()
    if changed is None:  # another process deleted the booking since the caller found it
        raise StatusRefused(booking.status)
    if is_changed:
        queue_event(booking.network.owner_id, changed, rule.event)
        if status == Status.CANCELLED:
            owe_booking(changed, by)
    elif changed.status != status:
        raise StatusRefused(changed.status)
    return changed


def queue_event(owner_id: int, booking: Booking, type: str) -> int:
    """Queue an event with the present state of a booking, for each subscription that wants it; how many.

    The subscriptions are those of the owner of its network and of the keys of its customer. Call it in the
    transaction that causes the event.
    """
    event = OutboxEvent(
        type=type,
        audience=(owner_id,),
        payload=describe_event(booking),
        credentials=find_credentials(booking),
    )
    return outbox.record([event])


def find_credentials(booking: Booking) -> QuerySet[ApiKey, int]:
    """The credentials whose webhooks get the events of a booking; nothing is read before they are needed.

    The credentials are those of the live keys that may book, of the network and the customer of the booking's key.
    A booking whose key was deleted has none.
    """
    customer = ApiKey.objects.filter(bookings=booking.pk).values("customer")
    keys = ApiKey.objects.live().filter(
        network_id=booking.network_id, customer__in=customer, scope__in=ApiKey.BOOKING_SCOPES
    )
    return keys.values_list("credential_id", flat=True)


def describe_event(booking: Booking) -> dict[str, Any]:
    """The payload of an event: the names of the AGNT contract, and not the guest's note."""
    return {
        "booking_id": str(booking.public_id),
        "venue_id": str(booking.venue.public_id),
        "status": str(booking.status),
        "from": booking.sender,
        "slot_id": booking.slot_id,
        "slot_time": booking.slot_time,
        "party_size": booking.party_size,
    }


def list_bookings(owner: User) -> QuerySet[Booking]:
    """The bookings of an owner's network, with what pages and REST show of each."""
    loaded = Booking.objects.select_related("network", "venue", "key__credential", "usage_event")
    return loaded.filter(network__owner=owner)


def list_actions(booking: Booking) -> list[Status]:
    """The statuses that the owner can give a booking now."""
    return [status for status, rule in STATUS_RULES.items() if booking.status in rule.before]


def _write_reply(payload: Json) -> str:
    """The payload of a venue as it is kept: without a signature, and of a long one the fields of a reply alone."""
    kept = {name: value for name, value in payload.items() if name not in SIGNATURE_KEYS}
    if len(text := json.dumps(kept)) > MAX_REPLY_CHARS:
        text = json.dumps({name: value for name, value in kept.items() if name in SCHEMA["properties"]})
    return text if kept else ""
