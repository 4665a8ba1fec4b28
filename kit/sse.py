"""Server-Sent Events: writes events with one `data:` line each, and reads any valid stream, with limits."""

HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]
KEEPALIVE = b": keep-alive\n\n"


def event(data: bytes, event_id: str = "", *, name: str = "") -> bytes:
    """An event with one compact JSON document. `event_id`: a reconnecting client sends it in `Last-Event-ID`."""
    framed = b"data: " + data + b"\n\n"
    if name:
        framed = f"event: {name}\n".encode() + framed
    return f"id: {event_id}\n".encode() + framed if event_id else framed


class EventTooLong(Exception):
    """A line or an event is over the limit."""


class EventReader:
    """Reads a stream in pieces of any size; line ends may be LF, CR or both. Ignores names, ids and comments."""

    def __init__(self, max_event_bytes: int) -> None:
        self._max_bytes = max_event_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Read a piece; returns the data of each event that it completes.

        Raises:
            EventTooLong: the caller must stop reading.
        """
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_cr = piece.endswith(b"\r")
        *lines, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for line in lines:
            whole = bytes(self._line) + line
            self._line.clear()
            if not whole and self._data:
                events.append(b"\n".join(self._data))
                self._data, self._size = [], 0
            self._take(whole)
        self._line += rest
        self._check(len(self._line))
        return events

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._check(len(value))
            self._data.append(value.removeprefix(b" "))
            self._size += len(value) + 1

    def _check(self, more: int) -> None:
        if self._size + more > self._max_bytes:
            raise EventTooLong
