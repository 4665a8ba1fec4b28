"""The endpoint of AGNT in the hub's public description."""

from collections.abc import Collection
from typing import Any

from agnt.endpoint.http import PATH, STATUS_PATH, VENUES_PATH
from agnt.service.intake.arrivals import REPLAY_HEADER
from agnt.wire import payloads, shapes
from clawbridge.agnt.fields import MEANINGS, SIGNATURE_HEADER, ErrorCode
from kit.describe import AGNT_KEY, NO_CREDENTIAL, DescribedAnswer, DescribedOperation, Either, ErrorBody, Parameter

RATE_HEADERS = (
    Parameter(name="X-RateLimit-Limit", shape=int, text="Calls of the key on a UTC day; where the call counts."),
    Parameter(name="X-RateLimit-Remaining", shape=int, text="Calls that are left today."),
    Parameter(name="X-RateLimit-Reset", shape=int, text="When the next day begins, in Unix seconds."),
)
CODE_HEADER = Parameter(name="X-A2A-Error", shape=ErrorCode, text="The code of the error.")
REPLAYED = Parameter(name=REPLAY_HEADER, text="`true`: this is the response to an earlier request.")
RETRY_HEADER = Parameter(name="Retry-After", shape=int, text="Seconds, where they are known.")
CHALLENGE_HEADER = Parameter(name="WWW-Authenticate", text="`Bearer`, with `unauthorized`.")
MORE_HEADERS = {
    401: [CHALLENGE_HEADER],
    409: [RETRY_HEADER],
    429: [RETRY_HEADER],
    500: [RETRY_HEADER],
    503: [RETRY_HEADER],
}
MORE_TEXTS = {
    400: ["The body is no JSON object, a key is in the address, or a header came with two values."],
    408: ["The body did not come in time."],
    413: ["The body or `agent_context` is over the limit."],
    422: ["The message names what is missing, unknown or wrong."],
    429: ["The calls of the day are used up."],
    503: ["Or the hub is starting: `unavailable`."],
}
OF_TRANSPORT = (ErrorCode.TLS_REQUIRED, ErrorCode.INTERNAL_ERROR)
OF_LIST = (
    *OF_TRANSPORT,
    ErrorCode.UNAUTHORIZED,
    ErrorCode.INVALID_ENVELOPE,
    ErrorCode.RATE_LIMITED,
    ErrorCode.TTL_EXCEEDED,
)
_STARTING = DescribedAnswer(shape=ErrorBody, text="The hub is starting: `unavailable`.", headers=[RETRY_HEADER])


def _describe_errors(
    shape: Any, codes: Collection[ErrorCode], *malformed: int, headers: Collection[Parameter] = RATE_HEADERS
) -> dict[int, DescribedAnswer]:
    """The answers with these codes, by status. `malformed`: statuses of `invalid_envelope` besides its own."""
    by_status = {status: [ErrorCode.INVALID_ENVELOPE] for status in malformed}
    for code in codes:
        by_status.setdefault(MEANINGS[code].status, []).append(code)
    return {
        status: DescribedAnswer(
            shape=Either([shape, ErrorBody]) if status == 503 else shape,
            text=" ".join([", ".join(f"`{code.value}`" for code in named) + ".", *MORE_TEXTS.get(status, ())]),
            headers=[*headers, CODE_HEADER, *MORE_HEADERS.get(status, ())],
        )
        for status, named in sorted(by_status.items())
    }


OPERATIONS = (
    DescribedOperation(
        method="post",
        path=PATH,
        name="sendEnvelope",
        summary="Send an AGNT envelope to the network of the key.",
        text="The same `from`, `intent` and `timestamp` are one event: its response comes again. Unknown fields"
        " are refused; a network that is not strict ignores those of a payload.",
        tag="agnt",
        security=(AGNT_KEY,),
        request=Either(shapes.REQUESTS),
        parameters=[
            Parameter(
                name=SIGNATURE_HEADER,
                place="header",
                text="`ts=<Unix seconds>,v1=<hex>`: HMAC-SHA256 of `ts`, a dot and the body.",
            )
        ],
        adds_errors=False,
        answers={
            200: DescribedAnswer(
                shape=Either([*shapes.ANSWERS, shapes.AgntAgentResponse]),
                text="The result, by intent.",
                headers=[*RATE_HEADERS, REPLAYED],
            ),
            **_describe_errors(shapes.AgntErrorResponse, list(ErrorCode), 400, 408),
        },
    ),
    DescribedOperation(
        method="get",
        path=STATUS_PATH,
        name="getAgntStatus",
        summary="Whether venues of the hub are asked; with a key, whether those of the key's network are.",
        tag="agnt",
        security=(NO_CREDENTIAL, AGNT_KEY),
        adds_errors=False,
        answers={
            200: DescribedAnswer(shape=shapes.AgntStatus, text="They are."),
            **_describe_errors(shapes.AgntErrorResponse, (*OF_TRANSPORT, ErrorCode.UNAUTHORIZED), 400, headers=()),
            503: DescribedAnswer(
                shape=Either([shapes.AgntStatus, ErrorBody]),
                text=(
                    "The breaker of the key's network is open, or without a key those of all networks with venues;"
                    " or the database is away, or the hub is starting."
                ),
            ),
        },
    ),
    DescribedOperation(
        method="get",
        path=VENUES_PATH,
        name="listVenuesOfKey",
        summary="The venues of the key's network: `venue.list` without an envelope.",
        tag="agnt",
        security=(AGNT_KEY,),
        parameters=[
            Parameter(name="category", shape=payloads.Category),
            Parameter(name="location", shape=payloads.Location),
            Parameter(name="limit", shape=payloads.ListLimit, text=f"default {payloads.DEFAULT_LISTED}"),
        ],
        adds_errors=False,
        answers={
            200: DescribedAnswer(shape=shapes.AgntVenues, text="The venues.", headers=RATE_HEADERS),
            **_describe_errors(ErrorBody, OF_LIST, 400),
            503: _STARTING,
        },
    ),
)
