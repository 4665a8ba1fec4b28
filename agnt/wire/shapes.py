"""The envelopes of AGNT as the hub's public description has them.

`agnt.wire.payloads` has the shapes of payloads, by which it checks them; `agnt.wire.envelope` checks the rest of a
request, and names all flaws of it.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from agnt.wire.payloads import AgntBookingOrder, AgntConfirmOrder, AgntListOrder, AgntSearchOrder
from clawbridge.agnt.fields import (
    DEFAULT_TTL_MS,
    MAX_CONTEXT_BYTES,
    MAX_TIMESTAMP_CHARS,
    MAX_TTL_MS,
    NAME,
    NETWORK,
    PROTOCOL,
    ErrorCode,
)
from clawbridge.agnt.signing import MAX_HOPS, MAX_UNIX_S
from kit.describe import Time, Uuid
from kit.rows import RowSource

Protocol = Literal["openclaw/a2a/v1"]
BookingStatus = Literal["pending", "confirmed", "completed", "cancelled", "no_show"]
BreakerState = Literal["closed", "half_open", "open", "unknown"]
Name = Annotated[str, Meta(pattern=f"^{NAME}$")]


class AgntHop(Struct, kw_only=True, forbid_unknown_fields=True):
    """An agent that passed an envelope on. `sig`: HMAC-SHA256 of canonical JSON: `agent`, `prev` and `ts`."""

    agent: Name
    ts: Annotated[int, Meta(ge=0, lt=MAX_UNIX_S, description="Unix seconds.")]
    sig: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class _Request(Struct, kw_only=True, forbid_unknown_fields=True, rename={"sender": "from"}):
    sender: Name
    from_agent: Annotated[str, Meta(description="Another name of `from`.")] | UnsetType = UNSET
    to: Annotated[str, Meta(pattern=f"^{NAME}$", description="The network, or the `agent_id` of a venue.")] = (
        NETWORK
    )
    ttl_ms: Annotated[
        int, Meta(ge=1, description=f"Of the whole round trip; above {MAX_TTL_MS} it counts as that.")
    ] = DEFAULT_TTL_MS
    timestamp: Annotated[
        str,
        Meta(
            max_length=MAX_TIMESTAMP_CHARS,
            description="ISO 8601 with Z or an offset. With `from` and `intent` it names the event.",
        ),
    ] = ""
    agent_context: Annotated[
        dict[str, Any], Meta(description=f"Comes back unchanged; at most {MAX_CONTEXT_BYTES} bytes.")
    ] = msgspec.field(default_factory=dict)
    protocol: Protocol = PROTOCOL
    via: (
        Annotated[
            list[AgntHop],
            Meta(min_length=1, max_length=MAX_HOPS, description="Who passed it on, where the network takes that."),
        ]
        | UnsetType
    ) = UNSET


class AgntPing(_Request, kw_only=True):
    """The check that a network answers. The payload is ignored."""

    intent: Literal["network.ping"]
    payload: dict[str, Any] = msgspec.field(default_factory=dict)


class AgntVenueList(_Request, kw_only=True):
    """The venues of a network, in its order."""

    intent: Literal["venue.list"]
    payload: AgntListOrder = msgspec.field(default_factory=AgntListOrder)


class AgntSearch(_Request, kw_only=True):
    """Venues to book at. A search reserves nothing."""

    intent: Literal["booking.search"]
    payload: AgntSearchOrder = msgspec.field(default_factory=AgntSearchOrder)


class AgntConfirm(_Request, kw_only=True):
    """Book at a venue, and be charged. The envelope needs a `timestamp`, unless the network is not strict."""

    intent: Literal["booking.confirm"]
    payload: AgntConfirmOrder


class AgntStatusOrder(_Request, kw_only=True):
    """The status of a booking of the key's customer."""

    intent: Literal["booking.status"]
    payload: AgntBookingOrder


class AgntCancel(_Request, kw_only=True):
    """Cancel a booking of the key's customer; a repeated call succeeds. The charge stays."""

    intent: Literal["booking.cancel"]
    payload: AgntBookingOrder


class AgntVenue(TypedDict):
    """A venue. `agent_id`: what an envelope is `to` for its agent; empty without one."""

    venue_id: Annotated[Uuid, RowSource("public_id")]
    slug: str
    agent_id: Annotated[str, RowSource("agent_name")]
    name: str
    category: str
    area: str
    city: str
    tags: list[str]
    price_range: str
    referral_fee_pct: int | float


class AgntVenues(TypedDict):
    """Active venues, the highest rank first."""

    venues: list[AgntVenue]
    count: int


class AgntPingResult(TypedDict):
    """The result of `network.ping`. `agent_id`: the sender of the envelope."""

    status: Literal["ok"]
    active_venues: int
    tier: Literal["free", "pro", "enterprise"]
    agent_id: str
    network_version: str


class AgntListResult(AgntVenues):
    """The result of `venue.list`."""

    status: Literal["ok"]


class AgntSearchResult(TypedDict):
    """The result of `booking.search`; after `expires_at` a search must be repeated."""

    status: Literal["ok"]
    results: list[AgntVenue]
    count: int
    fee_pct: int
    expires_at: Time


class AgntPresent(TypedDict):
    """The state of a booking when its response is repeated."""

    status: BookingStatus
    updated_at: Time


class _Booking(TypedDict):
    booking_id: Annotated[Uuid, RowSource("public_id")]
    venue: AgntVenue
    slot_id: NotRequired[str]
    slot_time: NotRequired[str]
    party_size: NotRequired[int]
    note: NotRequired[str]
    venue_booking_id: NotRequired[str]
    venue_reply: NotRequired[dict[str, Any]]


class AgntBooking(_Booking):
    """A booking. Slot, time and size are those of the order, unless the venue confirmed others.

    `venue_booking_id`: the venue's own id. `venue_reply`: the whole payload with which it accepted. `present`: of
    a repeated response, once the booking has another status.
    """

    status: Literal["pending"]
    present: NotRequired[AgntPresent]


class AgntBookingState(_Booking):
    """A booking as it is now. `updated_at`: when it got its status."""

    status: BookingStatus
    updated_at: Time


class AgntError(TypedDict):
    """An error. `retryable`: the same envelope may succeed later. `fields`: what is wrong in it."""

    code: ErrorCode
    message: str
    retryable: bool
    retry_after_s: NotRequired[int]
    fields: NotRequired[list[str]]
    supported: NotRequired[list[Protocol]]


class AgntFailure(TypedDict):
    """The payload of an error."""

    status: Literal["error"]
    error: AgntError


class _Response(Struct, kw_only=True, rename={"sender": "from"}):
    protocol: Protocol
    sender: str
    to: str
    agent_context: dict[str, Any]
    ttl_ms: Annotated[int, Meta(ge=0, le=MAX_TTL_MS, description="What is left of it.")]
    timestamp: Time


def _declare(name: str, intent: str, result: Any) -> type[Struct]:
    """The response to an intent that succeeded."""
    fields = [("intent", Literal[intent]), ("payload", result)]
    text = {"__doc__": f"The answer to `{intent}`."}
    return msgspec.defstruct(name, fields, bases=(_Response,), kw_only=True, namespace=text)


REQUESTS = (AgntPing, AgntVenueList, AgntSearch, AgntConfirm, AgntStatusOrder, AgntCancel)
ANSWERS = (
    _declare("AgntPingResponse", "network.ping", AgntPingResult),
    _declare("AgntListResponse", "venue.list", AgntListResult),
    _declare("AgntSearchResponse", "booking.search", AgntSearchResult),
    _declare("AgntConfirmResponse", "booking.confirm", AgntBooking),
    _declare("AgntStatusResponse", "booking.status", AgntBookingState),
    _declare("AgntCancelResponse", "booking.cancel", AgntBookingState),
)


class AgntAgentResponse(_Response, kw_only=True):
    """The answer of a venue's agent to an envelope that was `to` it; the agent says what the payload holds."""

    intent: Literal["network.ping", "venue.list", "booking.search"]
    payload: dict[str, Any]


class AgntErrorResponse(_Response, kw_only=True):
    """An error. `to`, `intent`: empty where the request cannot be read."""

    intent: str
    payload: AgntFailure


class AgntStatus(TypedDict):
    """The report whether venues are asked.

    `breaker`: with a key that of its network; without one `open` while those of all networks with venues are.
    `unknown`: the database does not answer.
    """

    status: Literal["ok", "degraded"]
    protocol: Protocol
    network_version: str
    time: Time
    breaker: BreakerState
