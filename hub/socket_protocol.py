"""uvicorn's protocol for WebSockets.

Sockets get protocol pings where no JSON frame shows life: on `/cli` and at the gateway.

A whole text frame of at most MAX_PLAIN_BYTES is read and written here, without the objects of `websockets`: most
frames of agents are such. All other frames go through the parser of `websockets`, from their first byte on, which
also checks what clients must not send, and closes.
"""

import asyncio
from collections import deque
from typing import Any

from django.conf import settings
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.streams import StreamReader

from gateway.surface.socket import PATHS as GATEWAY_PATHS
from kit.asgi import below
from kit.durations import seconds
from kit.sockets import ReceiveNow

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform for which `websockets` has no compiled part
    from websockets.utils import apply_mask

PING_EVERY_S = seconds(25.0)
PONG_WITHIN_S = seconds(20.0, at_least_s=10.0)
MIN_PONG_S = 10.0  # for a client with a shorter heartbeat
PINGED = GATEWAY_PATHS | {"/cli"}
HEARTBEAT_TIMEOUT = 4008  # a close code that only `a2a-v1` has
INVALID_DATA = 1007  # a close code of RFC 6455
PONGS_AT_ONCE = 128  # of at most 127 bytes, to a client that may not read

# The header of a frame (RFC 6455, section 5.2).
TEXT = 0x81  # of a whole message, without extensions
MASKED = 0x80
MASK_BYTES = 4
LENGTH_IN_2_BYTES = 126
LENGTH_IN_8_BYTES = 127
MAX_PLAIN_BYTES = 65_535


class MessageQueue:
    """The messages that a socket received, for its one reader: the part of `asyncio.Queue` that uvicorn uses.

    uvicorn bounds the queue: it stops reading while a message waits. `reader`: the reader that waits for the next
    message, None while it handles a message or one is there.
    """

    __slots__ = ("_messages", "reader")

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()
        self.reader: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        """True if no message waits."""
        return not self._messages

    def put_nowait(self, message: Any) -> None:
        """Add a message, and wake the reader."""
        self._messages.append(message)
        reader, self.reader = self.reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    async def get(self) -> Any:
        """The next message, once there is one."""
        while not self._messages:
            self.reader = asyncio.get_running_loop().create_future()
            try:
                await self.reader
            finally:
                self.reader = None
        return self._messages.popleft()


class HubSockets(WebSocketsSansIOProtocol):
    """A socket. Agents on `/channel` get JSON pings from their consumer; other clients get protocol pings, so that
    the socket of a client that vanished is closed.

    `_is_plain`: the socket is accepted, without extensions. `_reads_plain`: the next byte begins a frame that may
    be a whole message.
    """

    __slots__ = (
        *("_has_heartbeat", "_is_plain", "_max_plain_bytes", "_pong", "_reads_plain", "_sending", "receive_now"),
    )

    queue: MessageQueue  # type: ignore[assignment]

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._sending = 0  # messages of the application that wait until the client reads
        self._has_heartbeat = False
        self._is_plain = self._reads_plain = False
        self._max_plain_bytes = min(MAX_PLAIN_BYTES, self.config.ws_max_size)
        self.queue = MessageQueue()
        self.receive_now: ReceiveNow | None = None  # see `kit.sockets.SocketConsumer`
        self._pong = b""  # the last one, for a client that does not read

    def send_now(self, text: bytes) -> bool:
        """See `kit.sockets.SocketConsumer`."""
        is_blocked = self._sending or not self.writable.is_set()
        if is_blocked or not self._is_plain or self.conn.close_sent is not None or self.transport.is_closing():
            return False
        size = len(text)
        if size < LENGTH_IN_2_BYTES:
            head = bytes((TEXT, size))
        elif size <= MAX_PLAIN_BYTES:
            head = bytes((TEXT, LENGTH_IN_2_BYTES, size >> 8, size & 0xFF))
        else:
            head = bytes((TEXT, LENGTH_IN_8_BYTES)) + size.to_bytes(8)
        self.transport.write(head + text)
        return True

    def data_received(self, data: bytes) -> None:
        """Take whole text frames; the parser of `websockets` gets the data from the first other frame on."""
        begins, size = 0, len(data)
        while begins + 2 <= size and self._reads_plain and data[begins] == TEXT:
            length = data[begins + 1] ^ MASKED  # more than 127 without the mask that a client has to use
            text_at = begins + 2 + MASK_BYTES
            if length == LENGTH_IN_2_BYTES and text_at + 2 <= size:
                length = data[begins + 2] << 8 | data[begins + 3]
                text_at += 2
            elif length >= LENGTH_IN_2_BYTES:
                break
            ends = text_at + length
            if ends > size or length > self._max_plain_bytes:
                break
            text = apply_mask(data[text_at:ends], data[text_at - MASK_BYTES : text_at])
            begins = ends
            # Only while the application waits for a message: messages are handled one by one, in order.
            if self.queue.reader is None or self.receive_now is None or not self.receive_now(text):
                self.curr_msg_data_type, self.frames = "text", [text]
                self.send_receive_event_to_app()
        if begins < size:
            super().data_received(data[begins:])
            self._reads_plain = self._is_plain and self._is_between_messages()

    def _is_between_messages(self) -> bool:
        """True if the parser of `websockets` has read whole messages, and nothing of the next frame."""
        waits: Any = self.conn.parser  # a generator, which says at which of its steps it waits
        while waits.gi_yieldfrom is not None:
            waits = waits.gi_yieldfrom
        return self.conn.current_size is None and waits.gi_code is StreamReader.at_eof.__code__

    def send_receive_event_to_app(self) -> None:
        """Give the application a whole message. A text that is no UTF-8 closes the socket.

        uvicorn would close the socket, too, and log an error.
        """
        text = b"".join(self.frames) if self.curr_msg_data_type == "text" and not self.close_sent else b""
        if is_utf_8(text):
            super().send_receive_event_to_app()
            return
        self.frames = []
        if self.conn.close_sent is None:  # the client's own close may have come with the text
            self.conn.send_close(INVALID_DATA)
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Close a socket whose client sent what is no frame; before the socket is accepted, end the connection.

        No close frame can be sent before, which uvicorn asserts: it would log an error.
        """
        if self.conn.close_sent is None:
            self.transport.abort()
        else:
            super().handle_parser_exception()

    def handle_ping(self) -> None:
        """Answer the pings of one read: the first call answers all of them, and a close that came after them.

        A client that reads nothing gets the last pong alone, once it reads (RFC 6455, 5.5.3).
        """
        frames = self.conn.data_to_send()
        if self.conn.close_rcvd is not None:  # these are the last frames of the socket
            self.transport.write(b"".join(frames))
            return
        for start in range(0, len(frames), PONGS_AT_ONCE):
            if not self.writable.is_set():
                self._pong = frames[-1]
                break
            self.transport.write(b"".join(frames[start : start + PONGS_AT_ONCE]))

    def resume_writing(self) -> None:
        """Let senders go on, as the buffer has room again."""
        super().resume_writing()
        pong, self._pong = self._pong, b""
        if pong and not self.transport.is_closing():
            self.transport.write(pong)

    def set_heartbeat(self, every_s: float) -> None:
        """See `kit.sockets.find_set_heartbeat`. The pong is due after the same time, but at least 10 and at most
        20 s.
        """
        self._has_heartbeat = True
        self.ping_interval = every_s
        self.ping_timeout = min(max(every_s, MIN_PONG_S), PONG_WITHIN_S)
        if self.ping_timer is not None:
            self.ping_timer.cancel()
            self.schedule_ping()

    def keepalive_timeout(self) -> None:
        """Close the socket, because no pong came; not while reading is paused, when the pong may wait behind
        unread frames.
        """
        if self.read_paused:
            self.pong_timer = self.loop.call_later(PONG_WITHIN_S, self.keepalive_timeout)
            return
        if self._has_heartbeat and not self.close_sent and not self.transport.is_closing():
            self.conn.fail(HEARTBEAT_TIMEOUT, "no pong came")  # otherwise uvicorn would close with 1011
        super().keepalive_timeout()

    def start_keepalive(self) -> None:
        """Start the protocol pings of an accepted socket, if its path has them."""
        if below(settings.PATH_PREFIX, self.scope["path"]) in PINGED:
            super().start_keepalive()

    async def send(self, message: Any) -> None:
        """Send a message of the application; also an HTTP response that refuses an upgrade.

        Raises:
            ClientDisconnected: also when the server has closed the socket, and did not tell the application yet;
                or ended the connection before the socket was accepted.
        """
        if self.transport.is_closing() and (self.close_sent or not self.handshake_complete):
            raise ClientDisconnected
        self._sending += 1
        try:
            await super().send(message)
        finally:
            self._sending -= 1
        if message["type"] == "websocket.accept" and self.handshake_complete:
            self._is_plain = not self.conn.extensions and not self.conn.debug
            self._reads_plain = self._is_plain and self._is_between_messages()
            del self.request, self.response  # 3 KiB of headers, which uvicorn needs only to accept
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # else uvicorn logs an error


def is_utf_8(text: bytes) -> bool:
    """True if it is text in UTF-8."""
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False
