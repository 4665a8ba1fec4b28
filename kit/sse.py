"""Server-Sent Events, as every A2A client in use parses them: one `data:` line an event."""

HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]
KEEPALIVE = b": keep-alive\n\n"


def event(data: bytes, event_id: str = "") -> bytes:
    """Frame one compact JSON document. `event_id`: what a client that comes back says it saw last."""
    framed = b"data: " + data + b"\n\n"
    return f"id: {event_id}\n".encode() + framed if event_id else framed
