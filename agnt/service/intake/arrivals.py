"""A request of AGNT, what the intake decides about it, and the HTTP response."""

from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Self

import msgspec
from msgspec import Struct

from agnt.service.figures import DUPLICATE, OK
from agnt.service.key_checks import Rate
from agnt.service.keys import FoundKey
from agnt.service.networks import VenueAsk
from agnt.wire.envelope import Envelope, count_context_bytes, find_heading, read_envelope
from clawbridge.agnt import describe_response
from clawbridge.agnt.fields import DEFAULT_TTL_MS, EnvelopeRefused, ErrorCode, Json, describe_error, error_headers
from kit.asgi import Header, error_body
from kit.clock import approximate_now

MAX_USER_AGENT_CHARS = 200
REPLAY_HEADER = "Idempotent-Replay"

_encode = msgspec.json.Encoder().encode


class Answered(Struct, frozen=True):
    """The response is known. `is_replay`: the response belongs to an earlier request."""

    body: bytes
    is_replay: bool = False
    has_charged: bool = False


class PendingAsk(VenueAsk, frozen=True, kw_only=True):
    """A venue has to be asked; then `Intake.settle` writes the end. `claim`: the rows of the running event.

    `was_asked`: not for the first time, so that it may hold a reservation whatever it answers now.
    """

    network: FoundKey
    claim: list[int]
    dropped: list[str]
    was_asked: bool = False


# None: another request with the same event is running; only the count of the call was written.
Outcome = Answered | EnvelopeRefused | PendingAsk | None


@dataclass(slots=True, kw_only=True)
class Arrival:
    """A request. `digest`: of its key, empty without one. `envelope`: what was read, or the first error of it.

    `is_body_refused`: the flaw is of the body, and answered before a missing key. `began`, `deadline`: of the
    monotonic clock. `is_envelope` False: a REST list, which has no sender and no response envelope.
    The hub sets the rest while it answers: `key` when there is a live one, `rate` when the call was counted, and
    `late`: the error at the deadline. `has_left`: the caller waits no longer. `asked`: the ask of an agent of the
    hub, if the request needed one.
    """

    digest: str
    heading: Envelope = field(default_factory=lambda: find_heading({}))
    began: float
    deadline: float
    at: datetime
    envelope: Envelope | EnvelopeRefused = field(
        default_factory=lambda: EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, "no envelope was read")
    )
    is_body_refused: bool = False
    body: bytes = field(default=b"", repr=False)
    text: str = field(default="", repr=False)
    body_signature: str = field(default="", repr=False)
    user_agent: str = ""
    context_bytes: int = 0
    is_envelope: bool = True
    key: FoundKey | None = None
    rate: Rate | None = None
    late: EnvelopeRefused = field(
        default_factory=lambda: EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the answer took longer than ttl_ms")
    )
    has_left: bool = False
    asked: VenueAsk | None = None

    @classmethod
    def begin(cls, digest: str, began: float, user_agent: str) -> Self:
        """A request that has just come, with the time to live of an envelope that names none."""
        deadline = began + DEFAULT_TTL_MS / 1000
        user_agent = user_agent[:MAX_USER_AGENT_CHARS]
        return cls(digest=digest, began=began, deadline=deadline, at=approximate_now(), user_agent=user_agent)

    def read_fields(self, fields: Json) -> None:
        """Set heading, deadline and `envelope` by the fields of a body."""
        self.heading = find_heading(fields)
        context = fields.get("agent_context")
        self.context_bytes = count_context_bytes(context) if context and isinstance(context, dict) else 0
        try:
            self.envelope = self.heading = read_envelope(fields)
        except EnvelopeRefused as refused:
            self.envelope = refused
        self.deadline = self.began + self.heading.ttl_ms / 1000


class EnvelopeAnswer(Struct, frozen=True):
    """A response. `code`: the code of the error, `duplicate` for the response to an earlier request, else `ok`."""

    status: int
    body: bytes
    headers: list[Header]
    code: str


def make_answer(arrival: Arrival, answered: Answered) -> EnvelopeAnswer:
    """The response to a request that succeeded."""
    headers = arrival.rate.headers() if arrival.rate else {}
    if answered.is_replay:
        headers[REPLAY_HEADER] = "true"
    code = DUPLICATE if answered.is_replay else OK
    return EnvelopeAnswer(HTTPStatus.OK, answered.body, as_headers(headers), code)


def make_refusal(arrival: Arrival, refused: EnvelopeRefused, *, elapsed_s: float) -> EnvelopeAnswer:
    """The response to a request that was refused; of an envelope a response envelope."""
    headers = (arrival.rate.headers() if arrival.rate else {}) | error_headers(refused)
    body = error_body(refused.code.value, str(refused))
    if arrival.is_envelope:
        payload, now = describe_error(refused), approximate_now()
        body = _encode(describe_response(arrival.heading, payload, elapsed_s=elapsed_s, now=now))
    return EnvelopeAnswer(refused.status, body, as_headers(headers), refused.code.value)


def as_headers(headers: dict[str, str]) -> list[Header]:
    """The headers as ASGI expects them: pairs of bytes."""
    return [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
