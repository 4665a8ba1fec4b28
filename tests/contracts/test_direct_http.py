"""A POST that arrives whole is answered without a task of the application, others by the application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn

from hub.http_exchange import AnswerWhole
from hub.http_protocol import HEAD_WITHIN_S, HubHttpProtocol, end_overdue
from kit.asgi import LARGE_BODY_BYTES, ClientLeft, Exchange, Receive, Scope, Send, respond
from lab.waiting import eventually
from tests.contracts.servers import serving

POST = b"POST %b HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n%b\r\n%b"
KEEP_ALIVE_S = 75
LONG = 4_000
LIMIT = 64 * 1024 * 1024
waiting: list[Exchange] = []
followed: list[str] = []
scopes: list[Scope] = []


def ask(path: bytes = b"/direct", body: bytes = b"hi", headers: bytes = b"") -> bytes:
    return POST % (path, len(body), headers, body)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body it got."""
    scopes.append(scope)
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message["more_body"]:
            break
    if scope["path"] == "/followed":
        followed.append("began")
        followed.append((await receive())["type"])
    await respond(send, 200, b"application " + body)


async def answer_by_task(exchange: Exchange, body: bytes) -> None:
    await respond(exchange.send, 200, b"task " + body)


async def answer_in_pieces(exchange: Exchange) -> None:
    """Three pieces, one of them by `send`, and the end."""
    assert exchange.begin_now(200, [(b"x", b"1")])
    assert exchange.write_now(b"one ", is_last=False)
    await exchange.send({"type": "http.response.body", "body": b"two ", "more_body": True})
    assert exchange.write_now(b"three", is_last=False)
    assert exchange.write_now(b"", is_last=True)


def find_direct(scope: Scope) -> AnswerWhole | None:
    scopes.append(dict(scope))

    def answer(body: bytes, exchange: Exchange) -> None:
        match scope["path"]:
            case "/waits":
                waiting.append(exchange)
            case "/broken":
                raise RuntimeError
            case "/task":
                exchange.run(answer_by_task(exchange, body))
            case "/pieces":
                exchange.run(answer_in_pieces(exchange))
            case "/split":
                exchange.respond(200, [(b"content-length", b"0"), (b"x", b"a\r\nset-cookie: b")], b"")
            case "/short":
                exchange.respond(200, [(b"content-length", b"2")], b"123")
            case "/closes":
                exchange.respond(200, [(b"connection", b"close"), (b"content-length", b"0")], b"")
            case "/long":
                say(exchange, bytes(LONG))
            case _:
                say(exchange, b"direct " + body)

    return answer if scope["path"] not in ("/other", "/followed") else None


def say(exchange: Exchange, body: bytes) -> None:
    exchange.respond(200, [(b"content-length", b"%d" % len(body))], body)


class DirectProtocol(HubHttpProtocol):
    """The hub's own, with the functions above."""

    find_direct = staticmethod(find_direct)


@pytest.fixture
async def server() -> AsyncIterator[uvicorn.Server]:
    waiting.clear()
    followed.clear()
    scopes.clear()
    async with serving(application, DirectProtocol, timeout_keep_alive=KEEP_ALIVE_S) as server:
        yield server


@asynccontextmanager
async def connected(server: uvicorn.Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.config.port, limit=LIMIT)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@pytest.mark.parametrize(
    ("size", "way"), [(LARGE_BODY_BYTES, b"direct "), (LARGE_BODY_BYTES + 1, b"application ")]
)
async def test_a_large_body_whose_client_may_have_to_wait_has_no_direct_way(
    server: uvicorn.Server, size: int, way: bytes
) -> None:
    async with connected(server) as (reader, writer):
        writer.write(ask(body=b"x" * size))
        assert (await read(reader)).startswith(way)


async def asked(times: int = 1) -> None:
    async def is_asked() -> bool:
        return len(waiting) >= times

    await eventually(is_asked, "the request is there")


async def read(reader: asyncio.StreamReader) -> bytes:
    """The body of the next response."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
    return await asyncio.wait_for(reader.readexactly(size), 5)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (ask(), b"direct hi"),
        (ask(b"/task"), b"task hi"),
        (ask(b"/other"), b"application hi"),
        (ask(b"/broken"), b"Internal Server Error"),
        (ask(b"/split"), b"Internal Server Error"),
        (ask(b"/short"), b"Internal Server Error"),
        (ask(b"/direct?q=1"), b"application hi"),
        (ask(headers=b"expect: 100-continue\r\n"), b"direct hi"),
        (b"GET /direct HTTP/1.1\r\nhost: h\r\n\r\n", b"application "),
    ],
    ids=[
        "direct",
        "task",
        "no direct way",
        "error",
        "header with a line break",
        "wrong length",
        "query",
        "expects 100",
        "GET",
    ],
)
async def test_a_whole_request_is_answered(server: uvicorn.Server, sent: bytes, answer: bytes) -> None:
    async with connected(server) as (reader, writer):
        writer.write(sent)
        assert await read(reader) == answer


async def test_a_connection_is_kept_for_requests_of_both_ways(server: uvicorn.Server) -> None:
    async with connected(server) as (reader, writer):
        for _ in range(3):
            writer.write(ask())
            assert await read(reader) == b"direct hi"
            writer.write(ask(b"/other"))
            assert await read(reader) == b"application hi"


async def test_a_response_may_be_written_in_pieces_and_the_connection_is_kept(server: uvicorn.Server) -> None:
    async with connected(server) as (reader, writer):
        for _ in range(2):
            writer.write(ask(b"/pieces"))
            answer = await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 5)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.endswith(b"x: 1\r\ntransfer-encoding: chunked")
            assert body == b"4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n"


async def test_pieces_for_a_client_that_does_not_read_have_to_be_sent(server: uvicorn.Server) -> None:
    """`send` waits until the client reads; pieces for one that left are dropped."""
    async with connected(server) as (reader, writer):
        writer.write(ask(b"/waits"))
        await asked()
        exchange = waiting[0]
        assert not exchange.write_now(b"before the head", is_last=False)
        assert exchange.begin_now(200, [])
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        written = 0
        while exchange.write_now(bytes(LONG), is_last=False):
            written += LONG
            assert written < LIMIT
            await asyncio.sleep(0)
        exchange.check_client()
        sending = asyncio.ensure_future(
            exchange.send({"type": "http.response.body", "body": b"", "more_body": False})
        )
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), 20)
        assert answer.count(b"\0") == written
        await sending
        writer.write(ask(b"/waits"))
        await asked(2)

    async def is_gone() -> bool:
        return not server.server_state.connections

    await eventually(is_gone, "the server knows that the client left")
    assert waiting[1].begin_now(200, [])
    assert waiting[1].write_now(b"late", is_last=True)
    with pytest.raises(ClientLeft):
        waiting[1].check_client()


async def test_a_body_that_comes_later_is_for_the_application(server: uvicorn.Server) -> None:
    async with connected(server) as (reader, writer):
        writer.write(ask(body=b"hello")[:-2])
        await asyncio.sleep(0.05)
        writer.write(b"lo")
        assert await read(reader) == b"application hello"


async def test_requests_that_come_before_a_response_are_answered_in_order(server: uvicorn.Server) -> None:
    async with connected(server) as (reader, writer):
        writer.write(ask(b"/waits") + ask(body=b"2") + ask(b"/other", b"3"))
        await asked()
        say(waiting[0], b"1")
        assert [await read(reader) for _ in range(3)] == [b"1", b"application 2", b"application 3"]


async def test_a_second_response_and_one_to_a_client_that_left_write_nothing(server: uvicorn.Server) -> None:
    async with connected(server) as (reader, writer):
        writer.write(ask(b"/waits"))
        await asked()
        say(waiting[0], b"first")
        say(waiting[0], b"second")
        assert await read(reader) == b"first"
        writer.write(ask(b"/waits"))
        await asked(2)

    async def is_gone() -> bool:
        return not server.server_state.connections

    await eventually(is_gone, "the server knows that the client left")
    say(waiting[1], b"third")
    assert (await waiting[1].receive())["type"] == "http.disconnect"


async def test_the_request_that_is_served_is_told_that_its_client_left_before_the_next_one(
    server: uvicorn.Server,
) -> None:
    async with connected(server) as (_, writer):
        writer.write(ask(b"/followed") + ask(b"/other", b"2"))

        async def has_begun() -> bool:
            return followed == ["began"]

        await eventually(has_begun, "the first request is served")

    async def is_told() -> bool:
        return followed == ["began", "http.disconnect"]

    await eventually(is_told, "the application knows that the client left", within_s=5)


async def test_a_client_that_keeps_no_connection_is_told_that_it_closes(server: uvicorn.Server) -> None:
    for sent in (ask(headers=b"connection: close\r\n"), ask(b"/closes"), ask().replace(b"HTTP/1.1", b"HTTP/1.0")):
        async with connected(server) as (reader, writer):
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(-1), 5)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\ndate: ")
        assert answer.count(b"connection: close\r\n") == 1


async def test_a_server_that_ends_waits_for_the_response_to_a_request(server: uvicorn.Server) -> None:
    async with connected(server) as (reader, writer):
        writer.write(ask(b"/waits"))
        await asked()
        server.should_exit = True
        (connection,) = server.server_state.connections
        connection.shutdown()
        say(waiting[0], b"late")
        answer = await asyncio.wait_for(reader.read(-1), 5)
    assert b"connection: close\r\n" in answer
    assert answer.endswith(b"late")


async def test_a_body_may_end_with_an_empty_piece(server: uvicorn.Server) -> None:
    """The end comes after the task began, and before or after it waits."""
    head = b"POST /direct HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
    for first, rest in ((head, b"0\r\n\r\n"), (head + b"2\r\nhi\r\n", b"0\r\n\r\n")):
        async with connected(server) as (reader, writer):
            writer.write(first)
            await asyncio.sleep(0.02)
            writer.write(rest)
            assert (await read(reader)).startswith(b"application ")
    async with connected(server) as (reader, writer):
        writer.write(head + b"2\r\nhi\r\n0\r\n\r\n")
        assert await read(reader) == b"direct hi"


async def test_the_direct_way_has_the_scope_of_the_application_behind_a_proxy(server: uvicorn.Server) -> None:
    async with connected(server) as (reader, writer):
        writer.write(ask(b"/other", headers=b"X-Forwarded-For: 192.0.2.7\r\nx-forwarded-proto: https\r\n"))
        await read(reader)
    direct, application = scopes
    assert direct == application
    assert (direct["client"], direct["scheme"], direct["path"]) == (("192.0.2.7", 0), "https", "/other")


async def test_an_idle_connection_is_kept_as_long_as_configured(server: uvicorn.Server) -> None:
    """A look at the connections once a second closes it, and no sooner."""
    connections = server.server_state.connections
    async with connected(server) as (reader, writer):
        writer.write(ask())
        await read(reader)
        now = asyncio.get_running_loop().time()
        for later_s in (0, HEAD_WITHIN_S + 1, KEEP_ALIVE_S - 1):
            end_overdue(connections, now + later_s, 0.0)
        assert not reader.at_eof()
        writer.write(ask(b"/other"))
        await read(reader)
        end_overdue(connections, now + KEEP_ALIVE_S, 0.0)
        end_overdue(connections, now + 2 * KEEP_ALIVE_S, 0.0)
        writer.write(ask())
        await read(reader)
        end_overdue(connections, now + 3 * KEEP_ALIVE_S, 0.0)
        end_overdue(connections, now + 4 * KEEP_ALIVE_S + 1, 0.0)
        assert await asyncio.wait_for(reader.read(-1), 5) == b""


async def test_a_client_that_reads_nothing_is_served_until_the_buffers_are_full(
    server: uvicorn.Server,
) -> None:
    asks = 4_000  # with responses of much more than all buffers hold
    async with connected(server) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(ask(b"/long") * asks)
        count = -1
        while count < len(scopes):
            count = len(scopes)
            await asyncio.sleep(0.3)
        assert 0 < count < asks
        (connection,) = server.server_state.connections
        assert connection.transport.get_write_buffer_size() < 4 * 65_536 + LONG
