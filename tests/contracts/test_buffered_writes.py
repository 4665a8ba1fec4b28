"""The writes of a server leave in order and as one; flow control and closing see it all."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from hub.http_exchange import MAX_WAITING_BYTES, BufferedTransport


@pytest.fixture
async def pair() -> AsyncIterator[tuple[BufferedTransport, socket.socket]]:
    async with connected() as ends:
        yield ends


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[BufferedTransport, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    yield BufferedTransport(transport, loop), theirs
    transport.abort()
    theirs.close()


def arrived(end: socket.socket) -> bytes:
    try:
        return end.recv(1_000_000)
    except BlockingIOError:
        return b"nothing"


async def test_writes_of_one_turn_leave_together(pair: tuple[BufferedTransport, socket.socket]) -> None:
    ours, far = pair
    ours.write(b"head ")
    ours.write(b"body")
    assert arrived(far) == b"nothing"
    await asyncio.sleep(0)
    assert arrived(far) == b"head body"


async def test_much_does_not_wait(pair: tuple[BufferedTransport, socket.socket]) -> None:
    ours, far = pair
    ours.write(b"a")
    ours.write(b"b" * MAX_WAITING_BYTES)
    assert arrived(far) == b"a" + b"b" * MAX_WAITING_BYTES
    await asyncio.sleep(0)
    assert arrived(far) == b"nothing"


async def test_closing_writes_what_waits(pair: tuple[BufferedTransport, socket.socket]) -> None:
    ours, far = pair
    ours.write(b"the end")
    ours.close()
    assert ours.is_closing()
    assert arrived(far) == b"the end"


async def test_the_end_of_a_response_leaves_at_once_after_what_waits(
    pair: tuple[BufferedTransport, socket.socket],
) -> None:
    ours, far = pair
    ours.write_whole(b"first")
    assert arrived(far) == b"first"
    ours.write(b"head ")
    ours.write_whole(b"body")
    assert arrived(far) == b"head body"


def test_data_for_a_client_that_left_is_dropped() -> None:
    """On uvloop, whose transports do not take data once they are closed."""
    failures: list[dict[str, Any]] = []

    async def write_late() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
        async with connected() as (ours, _):
            ours.abort()
            await asyncio.sleep(0.01)
            ours.write(b"late")
            await asyncio.sleep(0.01)
            ours.write_whole(b"at once")

    uvloop.run(write_late())
    assert failures == []
