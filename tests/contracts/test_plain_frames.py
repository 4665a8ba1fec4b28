"""Frames of clients, however they are cut into packets: plain texts, and others, which `websockets` reads."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.asyncio.client import connect
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import Protocol, Side

from hub.socket_protocol import HubSockets
from kit.sockets import SocketConsumer
from tests.contracts.test_hub_sockets import serving

HANDSHAKE = (
    b"GET /channel HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
MASK = b"\x01\x02\x03\xf4"
WHOLE_TEXT, FIRST_TEXT, MIDDLE, LAST = 0x81, 0x01, 0x00, 0x80
BINARY, CLOSE, PING, PONG = 0x82, 0x88, 0x89, 0x8A
MAX_BYTES = 100_000


def frame(payload: bytes = b"", head: int = WHOLE_TEXT, *, length_bytes: int = 0, masked: bool = True) -> bytes:
    """A frame of a client. `length_bytes`: 2 or 8 for a length that is longer than it has to be."""
    size = len(payload)
    length_bytes = length_bytes or (0 if size < 126 else 2 if size < 65_536 else 8)
    short = {0: size, 2: 126, 8: 127}[length_bytes] | (0x80 if masked else 0)
    begins = bytes((head, short)) + (size.to_bytes(length_bytes) if length_bytes else b"")
    if not masked:
        return begins + payload
    return begins + MASK + mask(payload)


def mask(payload: bytes) -> bytes:
    return bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))


class Wire(asyncio.Transport):
    """A transport that records what the server writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = self.is_paused = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Recorder(SocketConsumer):
    """An application that records what it gets; it takes no text at once that begins with `later`."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[str | bytes | None] = []
        self.taken_at_once = 0
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def connect(self) -> None:
        await self.accept()

    def receive_now(self, text: bytes) -> bool:
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            return False
        if decoded.startswith("later"):
            return False
        self.got.append(decoded)
        self.taken_at_once += 1
        return True

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.may_go_on.wait()
        self.got.append(text_data if text_data is not None else bytes_data)

    async def disconnect(self, code: int) -> None:
        self.got.append(None)


class Client:
    """A connection without a network: each of the given pieces comes in a packet of its own."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.application = Recorder()
        config = uvicorn.Config(
            self.application, ws=HubSockets, log_config=None, interface="asgi3", ws_max_size=max_bytes
        )
        config.load()
        self.wire = Wire()
        self.server = HubSockets(config, ServerState(), {})
        self.server.connection_made(self.wire)

    async def open(self, handshake: bytes = HANDSHAKE) -> None:
        self.server.data_received(handshake)
        await self.settle()
        assert self.wire.written.startswith(b"HTTP/1.1 101")
        self.wire.written = b""

    async def settle(self) -> None:
        """Let the application handle what it has got."""
        for _ in range(5):
            await asyncio.sleep(0)

    async def send(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            if not self.wire.is_closed:
                self.server.data_received(piece)
                await self.settle()

    def answers(self) -> list[Frame]:
        """The frames that the server sent."""
        reading = Protocol(Side.CLIENT)
        reading.receive_data(self.wire.written)
        return [one for one in reading.events_received() if isinstance(one, Frame)]

    @property
    def close_code(self) -> int | None:
        """The code with which the server closed the socket."""
        closes = [one for one in self.answers() if one.opcode is Opcode.CLOSE]
        return Close.parse(closes[0].data).code if closes else None


@asynccontextmanager
async def opened(more: bytes = b"", *, max_bytes: int = MAX_BYTES) -> AsyncIterator[Client]:
    """A client whose socket is accepted. `more`: comes in one packet with the handshake."""
    client = Client(max_bytes)
    await client.open(HANDSHAKE + more)
    try:
        yield client
    finally:
        client.application.may_go_on.set()
        client.server.connection_lost(None)
        await client.settle()


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """The data in one packet, in two at each byte, and in packets of a byte; long data is cut near its ends."""
    yield [data]
    near_ends = [at for at in range(1, len(data)) if at < 40 or at > len(data) - 40]
    for at in near_ends:
        yield [data[:at], data[at:]]
    if len(data) < 200:
        yield [data[at : at + 1] for at in range(len(data))]


LONG = ("längst " * 9_000).encode()[:65_535]
GOOD: dict[str, tuple[bytes, list[str | bytes]]] = {
    "a text": (frame(b"hello"), ["hello"]),
    "an empty text": (frame(), [""]),
    "text beyond ASCII": (frame("größer 🦀".encode()), ["größer 🦀"]),
    "125 bytes": (frame(b"x" * 125), ["x" * 125]),
    "126 bytes": (frame(b"x" * 126), ["x" * 126]),
    "65535 bytes": (frame(LONG), [LONG.decode()]),
    "65536 bytes": (frame(b"y" * 65_536), ["y" * 65_536]),
    "the longest text": (frame(b"y" * MAX_BYTES), ["y" * MAX_BYTES]),
    "a length in more bytes": (frame(b"a", length_bytes=2) + frame(b"b", length_bytes=8), ["a", "b"]),
    "two texts": (frame(b"one") + frame(b"two"), ["one", "two"]),
    "bytes between texts": (frame(b"a") + frame(b"\xff", BINARY) + frame(b"b"), ["a", b"\xff", "b"]),
    "what looks like a frame": (frame(mask(frame(b"no")), BINARY) + frame(b"b"), [mask(frame(b"no")), "b"]),
    "a ping between texts": (frame(b"a") + frame(b"?", PING) + frame(b"b"), ["a", "b"]),
    "a pong between texts": (frame(b"a") + frame(b"?", PONG) + frame(b"b"), ["a", "b"]),
    "fragments": (frame(b"a", FIRST_TEXT) + frame(b"b", MIDDLE) + frame(b"c", LAST) + frame(b"d"), ["abc", "d"]),
    "a ping between fragments": (frame(b"a", FIRST_TEXT) + frame(b"?", PING) + frame(b"b", LAST), ["ab"]),
    "a letter in two fragments": (frame(b"\xc3", FIRST_TEXT) + frame(b"\xa4", LAST), ["ä"]),
    "a text that is not taken at once": (frame(b"a") + frame(b"later") + frame(b"b"), ["a", "later", "b"]),
}
BAD: dict[str, tuple[bytes, int]] = {
    "a frame without a mask": (frame(b"two", masked=False), 1002),
    "a reserved bit": (frame(b"two", WHOLE_TEXT | 0x40), 1002),
    "an unknown opcode": (frame(b"two", 0x83), 1002),
    "an end without a beginning": (frame(b"two", LAST), 1002),
    "a text inside of fragments": (frame(b"two", FIRST_TEXT) + frame(b"three"), 1002),
    "no UTF-8": (frame(b"\xff\xfe"), 1007),
    "half of a letter": (frame(b"\xc3"), 1007),
    "half of a surrogate": (frame(b"\xed\xa0\x80"), 1007),
    "too long a text": (frame(b"y" * (MAX_BYTES + 1)), 1009),
    "too long a ping": (frame(b"y" * 126, PING), 1002),
    "a close": (frame((4001).to_bytes(2) + b"bye", CLOSE), 4001),
    "a close with a bad code": (frame((999).to_bytes(2), CLOSE), 1002),
}


@pytest.mark.parametrize("name", GOOD)
async def test_messages_come_once_and_in_order_however_their_frames_are_cut(name: str) -> None:
    data, messages = GOOD[name]
    pings = [(Opcode.PONG, b"?")] * data.count(frame(b"?", PING))
    for pieces in cuts(data):
        async with opened() as client:
            await client.send([*pieces, frame(b"end")])
            assert client.application.got == [*messages, "end"], [len(one) for one in pieces]
            assert not client.wire.is_closed
            assert not client.wire.is_paused
            assert [(one.opcode, bytes(one.data)) for one in client.answers()] == pings


@pytest.mark.parametrize("name", BAD)
async def test_a_socket_is_closed_with_the_same_code_however_its_frames_are_cut(name: str) -> None:
    data, code = BAD[name]
    for pieces in cuts(frame(b"one") + data + frame(b"after")):
        async with opened() as client:
            await client.send(pieces)
            assert client.close_code == code, [len(one) for one in pieces]
            assert client.wire.is_closed
            # uvicorn drops messages that come in one packet with a frame that breaks the protocol.
            assert client.application.got in (["one", None], [None])


async def test_the_limit_of_the_server_holds_for_short_texts() -> None:
    async with opened(max_bytes=200) as client:
        await client.send([frame(b"x" * 200), frame(b"x" * 201)])
        assert client.application.got == ["x" * 200, None]
        assert client.close_code == 1009


async def test_texts_are_taken_at_once_again_after_other_frames() -> None:
    async with opened() as client:
        for other in (frame(b"?", PING), frame(b"a", FIRST_TEXT) + frame(b"b", LAST), frame(b"\0", BINARY)):
            before = client.application.taken_at_once
            await client.send([other, frame(b"one"), frame(b"two")[:-1], frame(b"two")[-1:], frame(b"three")])
            assert client.application.taken_at_once == before + 2  # `two` came in pieces


async def test_a_frame_that_comes_before_the_socket_is_accepted_is_read() -> None:
    for first, *others in cuts(frame(b"one")):
        async with opened(first) as client:
            await client.send([*others, frame(b"two")])
            assert client.application.got == ["one", "two"]


async def test_texts_wait_in_order_while_the_application_handles_one() -> None:
    async with opened() as client:
        client.application.may_go_on.clear()
        await client.send([frame(b"later one") + frame(b"two"), frame(b"three")])
        assert client.application.got == []
        assert client.wire.is_paused
        client.application.may_go_on.set()
        await client.settle()
        assert client.application.got == ["later one", "two", "three"]
        assert client.application.taken_at_once == 0
        assert not client.wire.is_paused


async def test_a_text_does_not_overtake_one_for_which_the_application_is_woken() -> None:
    async with opened() as client:
        client.server.data_received(frame(b"later"))
        client.server.data_received(frame(b"two"))
        await client.settle()
        assert client.application.got == ["later", "two"]


async def test_a_text_is_written_as_the_library_writes_it() -> None:
    async with opened() as client:
        for size in (0, 125, 126, 65_535, 65_536):
            client.wire.written = b""
            assert client.server.send_now(b"x" * size)
            assert client.wire.written == Frame(Opcode.TEXT, b"x" * size).serialize(mask=False)


async def test_texts_after_the_hub_began_to_close_are_ignored() -> None:
    async with opened() as client:
        assert client.server.send_now(b"last")
        await client.application.close(1000)
        assert not client.server.send_now(b"too late")
        await client.send([frame(b"late"), frame((1000).to_bytes(2), CLOSE)])
        assert client.application.got == [None]
        assert client.close_code == 1000
        assert client.wire.is_closed


async def test_a_socket_that_is_not_accepted_yet_sends_no_text() -> None:
    client = Client()
    assert not client.server.send_now(b"early")


async def test_the_server_forgets_the_application_of_a_closed_socket() -> None:
    async with opened() as client:
        assert client.server.receive_now is not None
    assert client.server.receive_now is None


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 70_000])
async def test_a_client_reads_texts_of_any_length(size: int) -> None:
    sockets = []

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        sockets.append(send.__self__)
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            assert sockets[0].send_now(message["text"].encode())

    async with (
        serving(echo, ws_per_message_deflate=False) as (_, url),
        connect(f"{url}/channel", compression=None) as client,
    ):
        for text in ("x" * size, "ü" * (size // 2)):
            await client.send(text)
            assert await client.recv() == text
        await client.ping()
        await client.send(["in ", "frag", "ments"])
        assert await client.recv() == "in fragments"


async def test_a_socket_with_compression_sends_and_reads_by_the_library() -> None:
    application = Recorder()
    async with serving(application, interface="asgi3") as (made, url), connect(f"{url}/channel") as client:
        await client.send("squeezed " * 100)
        await client.send("later")
        assert not made[0].send_now(b"no")
        await client.close()
    assert application.got[:2] == ["squeezed " * 100, "later"]
    assert application.taken_at_once == 0
