"""`python -m lab.bench.bare_server PORT`: an ASGI endpoint with nothing behind it.

The yardstick of `lab.bench.agnt`. It reads the body of each request as JSON and answers an envelope of the size of
an answered ping.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from lab.bench.sdk_server import serve

HEADERS = [(b"content-type", b"application/json")]
RESULT = {"active_venues": 10_000, "tier": "enterprise", "agent_id": "bench", "network_version": "1.0"}

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


async def application(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Answer one request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    envelope = _decode(body) | {"payload": RESULT}
    answer = _encode(envelope)
    length = (b"content-length", str(len(answer)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, length]})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    serve(application, int(sys.argv[1]), interface="asgi3", lifespan="off")
