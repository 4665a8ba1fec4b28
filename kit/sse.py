"""Server-Sent Events, as every A2A client in use parses them: one `data:` line an event."""

HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]
KEEPALIVE = b": keep-alive\n\n"


def event(data: bytes) -> bytes:
    """Frame one compact JSON document."""
    return b"data: " + data + b"\n\n"
