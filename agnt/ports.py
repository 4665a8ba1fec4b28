"""What the handlers of envelopes need from outside; hub/wiring.py chooses the implementation."""

from typing import Protocol

from msgspec import Struct

from agnt.envelope import Envelope
from agnt.errors import Json
from agnt.payloads import Confirm


class NetworkRef(Struct, frozen=True, kw_only=True):
    """A network, as an ask to one of its venues needs it: ids of rows."""

    network_id: int
    owner_id: int
    service_user_id: int


class VenueRef(Struct, frozen=True, kw_only=True):
    """A venue, as an ask to it needs it. `venue_id`: of its row; `public_id`: `venue_id` on the wire.

    `agent_name`: `agent_id` on the wire, may be empty. `agent_id`: of the row of the hub's agent that is asked;
    None: the venue is asked at `url`, or is not asked.
    """

    venue_id: int
    public_id: str
    slug: str
    agent_name: str
    name: str
    agent_id: int | None = None
    url: str = ""

    @property
    def is_asked(self) -> bool:
        """Whether a booking needs the word of the venue: it has an agent, or a URL."""
        return self.agent_id is not None or self.url != ""


class VenueAnswer(Struct, frozen=True, kw_only=True):
    """What a venue confirmed; what it did not name is as it was asked for."""

    slot_id: str
    slot_time: str
    party_size: int | None
    note: str = ""


class VenueAsks(Protocol):
    """Asks venues. `deadline`: of the monotonic clock; both methods end before it.

    Call neither for a venue that `is_asked` denies. A caller that cancels one gets no answer; the venue may have
    acted all the same.
    """

    async def confirm(
        self, network: NetworkRef, venue: VenueRef, order: Confirm, envelope: Envelope, deadline: float
    ) -> VenueAnswer:
        """Have a venue confirm a booking.

        Raises:
            EnvelopeRefused: `circuit_open`: nothing was sent; `venue_unreachable`; `slot_unavailable`;
                `ttl_exceeded`: the venue may have confirmed it.
        """
        ...

    async def ask(
        self, network: NetworkRef, venue: VenueRef, intent: str, payload: Json, envelope: Envelope, deadline: float
    ) -> Json:
        """The payload with which a venue answers an intent.

        Raises:
            EnvelopeRefused: as `confirm`.
        """
        ...
