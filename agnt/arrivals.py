"""The pieces of work of the intake: an envelope that came in, and the end of one that waited for its venue."""

from dataclasses import dataclass, field
from datetime import datetime

from msgspec import Struct

from agnt.envelope import Envelope, Heading
from agnt.errors import EnvelopeRefused, Json
from agnt.keys import FoundKey
from agnt.limits import Rate
from agnt.payloads import Order
from agnt.ports import NetworkRef, VenueAnswer, VenueRef


class Answered(Struct, frozen=True):
    """The response is known. `is_replay`: it is that of an earlier request."""

    body: bytes
    is_replay: bool = False
    has_charged: bool = False


class Refused(Struct, frozen=True):
    """The response is an error."""

    refusal: EnvelopeRefused


class InProgress(Struct, frozen=True):
    """Another request with the same event runs; nothing was written but the count of the call."""


class VenuesChanged(Struct, frozen=True):
    """The index of the network has to be loaded first; nothing was written."""

    network_id: int
    version: int


class AskVenue(Struct, frozen=True, kw_only=True):
    """A venue has to be asked; then a `Settlement` writes the end. `seen_id`: the running event, 0 for none."""

    seen_id: int
    network: NetworkRef
    venue: VenueRef
    order: Order
    dropped: list[str]


Outcome = Answered | Refused | InProgress | VenuesChanged | AskVenue


@dataclass(slots=True, kw_only=True)
class Arrival:
    """A request. `digest`: of its key, empty without one. `refusal`: the first flaw of its body or envelope.

    `is_body_refused`: the flaw is of the body, and answered before a missing key. `began`, `deadline`: of the
    monotonic clock. `is_envelope` False: a REST list, which has no sender and no response envelope.
    The intake sets the rest: `key` when there is a live one, `rate` when the call was counted.
    """

    digest: str
    heading: Heading
    began: float
    deadline: float
    at: datetime
    envelope: Envelope | None = None
    refusal: EnvelopeRefused | None = None
    is_body_refused: bool = False
    body: bytes = field(default=b"", repr=False)
    text: str = field(default="", repr=False)
    body_signature: str = field(default="", repr=False)
    user_agent: str = ""
    context_bytes: int = 0
    is_envelope: bool = True
    key: FoundKey | None = None
    rate: Rate | None = None
    outcome: Outcome | None = None


@dataclass(slots=True, kw_only=True)
class Settlement:
    """The end of an arrival: that of a venue ask (`asked`), or an error that no batch wrote.

    `answer`: a venue confirmed; `result`: an agent answered another intent; `refusal`: neither.
    """

    arrival: Arrival
    asked: AskVenue | None = None
    answer: VenueAnswer | None = None
    result: Json | None = None
    refusal: EnvelopeRefused | None = None
    outcome: Outcome | None = None


Work = Arrival | Settlement
