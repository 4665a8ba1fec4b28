"""Webhook events of bookings: names, payloads, receivers, and what their deliveries have for readers of AGNT.

A confirm leaves the booking pending and yet queues `booking.confirmed`: `status` in the payload is the truth.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import QuerySet

from agnt.models import ApiKey, Booking
from webhooks.service import outbox
from webhooks.service.outbox import OutboxEvent
from webhooks.wire.catalog import EventForm

BOOKING_CONFIRMED = "booking.confirmed"
EVENT_OF_STATUS: Final[Mapping[str, str]] = {
    Booking.Status.CONFIRMED: BOOKING_CONFIRMED,
    Booking.Status.CANCELLED: "booking.cancelled",
    Booking.Status.COMPLETED: "booking.completed",
    Booking.Status.NO_SHOW: "booking.no_show",
}


def queue_event(owner_id: int, booking: Booking, type: str) -> int:
    """Queue an event with the present state of a booking, for each subscription that wants it; how many.

    The subscriptions are those of the owner of its network and of the keys of its customer. Call it in the
    transaction that causes the event.
    """
    event = OutboxEvent(
        type=type,
        audience=(owner_id,),
        payload=describe_booking(booking),
        credentials=find_credentials(booking),
    )
    return outbox.record([event])


def find_credentials(booking: Booking) -> QuerySet[ApiKey, int]:
    """The credentials whose webhooks get the events of a booking; nothing is read before they are needed.

    They are those of the live keys that may book, of the network and the customer of the booking's key. A booking
    whose key was deleted has none.
    """
    customer = ApiKey.objects.filter(bookings=booking.pk).values("customer")
    keys = ApiKey.objects.live().filter(
        network_id=booking.network_id, customer__in=customer, scope__in=ApiKey.BOOKING_SCOPES
    )
    return keys.values_list("credential_id", flat=True)


def describe_booking(booking: Booking) -> dict[str, Any]:
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


def sign_headers(secrets: Sequence[str], moment_s: int, body: bytes) -> Mapping[str, str]:
    """The headers of AGNT: the newest secret signs the time in Unix seconds, a dot and the body."""
    signed = f"{moment_s}.".encode("ascii") + body
    signature = hmac.new(secrets[0].encode(), signed, hashlib.sha256).hexdigest()
    return {"X-Agnt-Timestamp": str(moment_s), "X-Agnt-Signature": signature}


# Receivers of AGNT read `id`, `type` and `data`; those of this hub's other events, `eventId` and `payload`.
FORM = EventForm(copies={"id": "eventId", "data": "payload"}, sign=sign_headers)
