"""The streaming client: TLS names are checked, nothing left means nothing was sent, events are put together."""

import asyncio
import contextlib
import itertools
import socket
from pathlib import Path

import pytest

from kit.safe_http import NotSent, StreamingHttp, TargetRules, TooMuch, Unanswered
from kit.sse import EventReader, EventTooLong
from lab.receivers import receiving
from tests.listening import listening
from tests.remote.servers import Asked, as_http, raw_server
from tests.webhooks.certificates import make_tls

OWN_NETWORK = TargetRules(allows_private=True)


@contextlib.asynccontextmanager
async def asking(http: StreamingHttp, url: str, **more: object):  # type: ignore[no-untyped-def]
    try:
        async with http.stream("POST", url, headers={"Content-Length": "2"}, body=b"{}", **more) as incoming:  # type: ignore[arg-type]
            yield incoming
    finally:
        http.close()


async def test_it_says_when_something_leaves() -> None:
    left: list[str] = []

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        assert left == ["now"]
        assert asked.body == b"{}"
        writer.write(as_http(b"x" * 100))

    async with raw_server(answer) as far:
        async with asking(StreamingHttp(OWN_NETWORK), far.url, on_send=lambda: left.append("now")) as incoming:
            assert incoming.status == 200
            assert await incoming.read(100) == b"x" * 100
        async with asking(StreamingHttp(OWN_NETWORK), far.url) as incoming:
            with pytest.raises(TooMuch):
                await incoming.read(99)


async def test_a_certificate_of_another_name_gets_nothing(tmp_path: Path) -> None:
    theirs, ours = make_tls(tmp_path, "right.example")
    with receiving(tls=theirs) as receiver:
        url = receiver.url.replace("127.0.0.1", "{}.example")
        for name, is_good in (("right", True), ("wrong", False)):
            http = StreamingHttp(OWN_NETWORK, resolve=lambda host, port: ["127.0.0.1"], tls=ours)
            if is_good:
                async with asking(http, url.format(name)) as incoming:
                    assert incoming.status == 204
                continue
            with pytest.raises(NotSent, match="certificate"):
                async with asking(http, url.format(name)):
                    raise AssertionError("it was sent")
        assert len(receiver.received) == 1


async def test_refused_and_silent_connections_are_told_apart() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        with pytest.raises(NotSent, match="connection failed"):
            async with asking(StreamingHttp(OWN_NETWORK), url):
                raise AssertionError("it was sent")

    async def hang_up(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with raw_server(hang_up) as far:
        with pytest.raises(Unanswered):
            async with asking(StreamingHttp(OWN_NETWORK), far.url):
                raise AssertionError("it was answered")


async def test_tls_that_never_begins_ends_in_time() -> None:
    done = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        done.set()

    async with listening(silent) as port:
        with pytest.raises(NotSent):
            async with asking(StreamingHttp(OWN_NETWORK, connect_within_s=0.3), f"https://127.0.0.1:{port}/"):
                raise AssertionError("it was sent")
        await asyncio.wait_for(done.wait(), 5)


def test_events_come_whole_however_they_are_cut() -> None:
    lines = b": hello,id: 1,data: {a,data:b},,,event: x,data:  two,,data: lost".split(b",")
    for cut, end in itertools.product(range(1, 12), (b"\n", b"\r\n", b"\r")):
        stream, reader = end.join(lines), EventReader(100)
        pieces = [stream[start : start + cut] for start in range(0, len(stream), cut)]
        assert [data for piece in pieces for data in reader.feed(piece)] == [b"{a\nb}", b" two"], (cut, end)


def test_no_event_grows_without_end() -> None:
    def feed_on(piece: bytes) -> None:
        reader = EventReader(1000)
        for _ in range(2000):
            reader.feed(piece)

    for piece in (b"data: " + b"x" * 50, b"data: xx\n", b"data\n", b": " + b"x" * 50):
        with pytest.raises(EventTooLong):
            feed_on(piece)
