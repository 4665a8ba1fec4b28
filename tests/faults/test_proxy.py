"""The proxy through which faults reach connections: each way of spoiling is felt, and healing ends it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lab.proxy import Proxy, proxied
from tests.listening import listening

DELAY_S = 0.3
SILENCE_S = 0.5


@pytest.fixture
async def echo_port() -> AsyncIterator[int]:
    """A server that sends back what it gets, until its client ends."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
            writer.write(b"end")
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with listening(echo) as port:
        yield port


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    @asynccontextmanager
    async def through(cls, proxy: Proxy) -> AsyncIterator["Client"]:
        client = cls(*await asyncio.open_connection("127.0.0.1", proxy.port))
        try:
            yield client
        finally:
            client.writer.transport.abort()

    async def said(self, words: bytes) -> bytes:
        self.writer.write(words)
        return await self.reader.readexactly(len(words))


async def test_a_sound_way_passes_everything_and_the_end(echo_port: int) -> None:
    with proxied(echo_port) as proxy:
        async with Client.through(proxy) as client:
            words = bytes(range(256)) * 4096
            assert await client.said(words) == words
            client.writer.write_eof()
            assert await client.reader.read() == b"end"
            assert len(proxy.connections) == 1


async def test_a_delay_is_added_to_each_direction_and_does_not_narrow_the_way(echo_port: int) -> None:
    with proxied(echo_port) as proxy:
        async with Client.through(proxy) as client:
            proxy.spoil(latency_s=DELAY_S)
            began = time.monotonic()
            answers = [client.writer.write(b"x") or await client.reader.readexactly(1) for _ in range(2)]
            assert answers == [b"x", b"x"]
            assert time.monotonic() - began >= 4 * DELAY_S
            began = time.monotonic()
            for _ in range(10):  # under way at once: one delay for all
                client.writer.write(b"y")
                await asyncio.sleep(DELAY_S / 20)
            await client.reader.readexactly(10)
            assert time.monotonic() - began < 10 * DELAY_S


async def test_silence_lets_nothing_pass_and_tells_no_one_and_afterwards_all_arrives(echo_port: int) -> None:
    with proxied(echo_port) as proxy:
        async with Client.through(proxy) as client:
            proxy.silence()
            client.writer.write(b"hello?")
            async with Client.through(proxy) as late:  # the kernel accepts it, and no program answers
                late.writer.write(b"and me")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.reader.readexactly(1), SILENCE_S)
                proxy.heal()
                assert await client.reader.readexactly(6) == b"hello?"
                assert await late.reader.readexactly(6) == b"and me"


async def test_no_server_behind_it_is_an_end_and_not_a_hang(unused_tcp_port: int) -> None:
    with proxied(unused_tcp_port) as proxy:
        async with Client.through(proxy) as client:
            assert await asyncio.wait_for(client.reader.read(), 5) == b""
