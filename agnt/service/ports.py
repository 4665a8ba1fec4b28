"""Asks of venues: the port through which the intake has a venue asked."""

from typing import Protocol

from msgspec import Struct

from agnt.models import Venue
from agnt.service.keys import FoundKey
from agnt.wire.envelope import Envelope
from agnt.wire.errors import Json
from agnt.wire.payloads import Order


class VenueAsk(Struct, frozen=True, kw_only=True):
    """An envelope that a venue is to answer. `key`: the key of the caller. `order`: the checked payload."""

    key: FoundKey
    envelope: Envelope
    venue: Venue
    order: Order


class VenueAnswer(Struct, frozen=True, kw_only=True):
    """The confirmation of a venue. An empty field or None: the venue confirmed the order's value."""

    slot_id: str = ""
    slot_time: str = ""
    party_size: int | None = None
    note: str = ""


class VenueAsks(Protocol):
    """Asks venues. `deadline`: of the monotonic clock; the caller cancels what takes longer."""

    async def ask(self, asked: VenueAsk, deadline: float) -> VenueAnswer | Json:
        """Have a venue confirm a booking, or its agent answer another envelope: the result of that.

        Raises:
            EnvelopeRefused: `circuit_open`, `venue_unreachable`, `ttl_exceeded`, `routing_loop`; of a booking also
                `slot_unavailable`.
        """
