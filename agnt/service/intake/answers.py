"""The HTTP response to a request of AGNT."""

from collections.abc import Iterable
from http import HTTPStatus

import msgspec
from msgspec import Struct

from agnt.service.intake.arrivals import Answered, Arrival
from agnt.service.metrics import DUPLICATE, OK
from agnt.wire.envelope import Envelope
from clawbridge.agnt import describe_response
from clawbridge.agnt.errors import EnvelopeRefused, describe_error, error_headers
from kit.asgi import Header, error_body
from kit.clock import approximate_now

REPLAY_HEADER = "Idempotent-Replay"

_encode = msgspec.json.Encoder().encode


class Answer(Struct, frozen=True):
    """A response. `code`: the code of the error, `duplicate` for the response to an earlier request, else `ok`."""

    status: int
    body: bytes
    headers: list[Header]
    code: str


def make_answer(arrival: Arrival, answered: Answered) -> Answer:
    """The response to a request that succeeded."""
    headers = _rate_headers(arrival)
    if answered.is_replay:
        headers[REPLAY_HEADER] = "true"
    return Answer(HTTPStatus.OK, answered.body, as_headers(headers), DUPLICATE if answered.is_replay else OK)


def make_refusal(arrival: Arrival, refused: EnvelopeRefused, *, elapsed_s: float) -> Answer:
    """The response to a request that was refused."""
    headers = as_headers(_rate_headers(arrival) | error_headers(refused))
    if arrival.is_envelope:
        body = refusal_body(arrival.heading, refused, elapsed_s=elapsed_s)
    else:
        body = error_body(refused.code.value, str(refused))
    return Answer(refused.status, body, headers, refused.code.value)


def refusal_body(heading: Envelope, refused: EnvelopeRefused, *, elapsed_s: float) -> bytes:
    """An error as a response envelope."""
    payload = describe_error(refused)
    return _encode(describe_response(heading, payload, elapsed_s=elapsed_s, now=approximate_now()))


def as_headers(headers: dict[str, str]) -> list[Header]:
    """Headers as ASGI has them."""
    return [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


def allow(methods: Iterable[str]) -> Header:
    """The header of a 405."""
    return b"allow", ", ".join(methods).encode("ascii")


def _rate_headers(arrival: Arrival) -> dict[str, str]:
    return arrival.rate.headers() if arrival.rate is not None else {}
