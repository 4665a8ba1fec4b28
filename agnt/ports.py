"""What the endpoint of envelopes needs of other modules: venues that answer, and counters of `/metrics`."""

from typing import Protocol

from msgspec import Struct

from agnt.envelope import Envelope
from agnt.errors import Json
from agnt.payloads import Confirm


class NetworkRef(Struct, frozen=True, kw_only=True):
    """The network and the key of an envelope. Asks of its venues run as `service_user_id`."""

    network_id: int
    owner_id: int
    owner_login: str
    service_user_id: int
    key_id: int
    is_strict: bool


class VenueRef(Struct, frozen=True, kw_only=True):
    """A venue that is asked: through the hub when it has an `agent_id`, else by HTTP at its `url`."""

    venue_id: int
    public_id: str
    slug: str
    agent_name: str
    name: str
    agent_id: int | None
    url: str

    @property
    def is_asked(self) -> bool:
        """Whether it answers for itself; otherwise its row does."""
        return self.agent_id is not None or self.url != ""


class VenueAnswer(Struct, frozen=True, kw_only=True):
    """What a venue confirmed. Empty or None: as it was asked for."""

    slot_id: str = ""
    slot_time: str = ""
    party_size: int | None = None
    note: str = ""


class VenueAsks(Protocol):
    """Asks venues. `deadline`: of the monotonic clock; the caller cancels what takes longer."""

    async def confirm(
        self, network: NetworkRef, venue: VenueRef, order: Confirm, envelope: Envelope, deadline: float
    ) -> VenueAnswer:
        """Have a venue confirm a booking.

        Raises:
            EnvelopeRefused: `circuit_open`, `venue_unreachable`, `slot_unavailable`, `ttl_exceeded`,
                `routing_loop`.
        """

    async def ask(
        self, network: NetworkRef, venue: VenueRef, intent: str, payload: Json, envelope: Envelope, deadline: float
    ) -> Json:
        """Pass an envelope to the agent that it names; its result.

        Raises:
            EnvelopeRefused: `circuit_open`, `venue_unreachable`, `ttl_exceeded`, `routing_loop`.
        """


class EnvelopeCounts(Protocol):
    """Counts for `/metrics`; called by the event loop alone."""

    def note_envelope(self, intent: str, tier: str, status: str) -> None:
        """An envelope was answered. `status`: `ok`, `duplicate` or an error code.

        An unknown `intent` is empty, and so is the `tier` without a live key.
        """

    def note_charge(self) -> None:
        """A usage event was committed."""
