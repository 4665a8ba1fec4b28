"""Asks of venues: the port through which the intake has a venue asked."""

from typing import Protocol
from uuid import UUID

from msgspec import Struct

from agnt.models import Venue
from agnt.service.keys import NetworkRef
from agnt.wire.envelope import Envelope
from agnt.wire.payloads import Order
from clawbridge.agnt.errors import Json


class VenueAsk(Struct, frozen=True, kw_only=True):
    """An envelope that a venue is to answer. `order`: the checked payload.

    `order_id`: of an order, and of the booking that is made of it. `asked_at`: its timestamp at the venue.
    """

    network: NetworkRef
    envelope: Envelope
    venue: Venue
    order: Order
    order_id: UUID | None = None
    asked_at: str = ""


class VenueAsks(Protocol):
    """Asks venues. `deadline`: of the monotonic clock; the caller cancels what takes longer."""

    async def ask(self, asked: VenueAsk, deadline: float) -> Json:
        """The payload with which a venue confirms or cancels a booking, or its agent answers another envelope.

        Raises:
            EnvelopeRefused: `circuit_open`, `venue_unreachable`, `ttl_exceeded`, `routing_loop`; of a booking also
                `slot_unavailable`, `rate_limited`. `may_be_booked` says whether the venue may act all the same.
        """
