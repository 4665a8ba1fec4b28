"""Clients that are slow on purpose: they are disconnected, and other clients are served meanwhile."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

import httpx
import pytest

from hub.http_protocol import HEAD_WITHIN_S
from lab.agents import Echo, online
from lab.callers import bearer, envelope, question, rpc_path, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import on_hub

SLOW = 200
ASKS = 60
ROUNDS, MAX_ROUNDS = 3, 5  # more than 3 when something else was busy meanwhile
LARGE_BYTES = 8_000_000
DRIP_EVERY_S = 0.5
BUSY_MACHINE_S = 0.1  # what other workers' tests take of the cores while one asks
HANGS_UP_WITHIN_S = 30
HEAD_S = on_hub(HEAD_WITHIN_S, at_least_s=5.0)
HOST = "Host: 127.0.0.1\r\n"


class SlowClient:
    """A raw connection that writes, or reads, a byte now and then."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def drip(self, text: bytes) -> None:
        """Write byte by byte until it is hung up on."""
        with suppress(ConnectionError):
            for byte in text:
                self.writer.write(bytes([byte]))
                await self.writer.drain()
                await asyncio.sleep(DRIP_EVERY_S)

    async def ended(self) -> None:
        with suppress(ConnectionError):
            while not self.writer.transport.is_closing():
                with suppress(TimeoutError):
                    async with asyncio.timeout(DRIP_EVERY_S):
                        if not await self.reader.read(65_536):
                            return


@asynccontextmanager
async def connection(url: str) -> AsyncIterator[SlowClient]:
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield SlowClient(reader, writer)
    finally:
        writer.transport.abort()


def head(path: str, token: str, length: int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", HOST.strip(), f"Authorization: Bearer {token}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, "Content-Type: application/json", "", ""]).encode()


def get(path: str, token: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\n{HOST}Authorization: Bearer {token}\r\n\r\n".encode()


async def latencies(clients: list[httpx.AsyncClient], handle: str, token: str) -> list[float]:
    """The seconds of some asks, a few at a time."""
    found: list[float] = []

    async def ask_some(client: httpx.AsyncClient) -> None:
        for _ in range(ASKS // len(clients)):
            began = time.perf_counter()
            body = envelope("SendMessage", question("quick?"))
            answer = await client.post(rpc_path(handle), json=body, headers=bearer(token))
            assert answer.json()["result"]["status"]["state"] == "COMPLETED", answer.text
            found.append(time.perf_counter() - began)

    await asyncio.gather(*(ask_some(client) for client in clients))
    return found


def p95(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[-1]


async def keep_slow(hub: HubProcess, stack: AsyncExitStack, handle: str, token: str, file: str) -> None:
    """Most drip a head or a body, a few read a large file slowly; who is hung up on comes back at once.

    Returns once all of them are at it.
    """
    path, begun = rpc_path(handle), [asyncio.Event() for _ in range(SLOW)]

    async def slowly(number: int) -> None:
        while True:
            async with connection(hub.urls[number % len(hub.urls)]) as client:
                if number % 10 == 0:
                    client.writer.write(get(file, token))
                    while await client.reader.read(1):
                        begun[number].set()
                        await asyncio.sleep(DRIP_EVERY_S)
                    continue
                begun[number].set()
                if number % 2:
                    await client.drip(head(path, token, 10) * 100)
                else:
                    client.writer.write(head(path, token, 100_000))
                    await client.drip(b"{" * 100_000)

    for number in range(SLOW):
        stack.callback(asyncio.create_task(slowly(number)).cancel)
    for one in begun:
        await one.wait()


async def upload(hub: HubProcess, session_id: str | None, token: str) -> str:
    """Store a large file; the path of its bytes."""
    async with web(hub.url) as client:
        files = {"file": ("large.bin", b"x" * LARGE_BYTES)}
        answer = await client.post(f"/api/v1/sessions/{session_id}/files", files=files, headers=bearer(token))
    assert answer.status_code == 201, answer.text
    return f"/api/v1/files/{answer.json()['id']}/content"


@pytest.mark.slow
async def test_two_hundred_slow_clients_do_not_hurt_the_others(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    """Asks with and without them, in turns within one run; the medians of the rounds are compared.

    Real speed: a hub that hangs up on them sooner would be busy with those who come back.
    """
    hub = start_hub(make_storage("embedded"), TEST_TIME_SCALE=1)
    alice, owner = hub.mint("alice", "session"), hub.mint("owner", "session")
    calm: list[float] = []
    busy: list[float] = []
    async with (
        online(hub, Echo, agent={"concurrencyCap": 20, "dailyBudgetQueries": 100_000}) as agent,
        AsyncExitStack() as clients,
    ):
        file = await upload(hub, agent.session_id, owner)
        asking = [await clients.enter_async_context(web(url)) for url in (hub.urls[0], hub.urls[-1]) * 2]
        await latencies(asking, agent.handle, alice)  # everything is warm
        while len(busy) < ROUNDS or (_are_hurt(calm, busy) and len(busy) < MAX_ROUNDS):
            calm.append(p95(await latencies(asking, agent.handle, alice)))
            async with AsyncExitStack() as slow:
                await keep_slow(hub, slow, agent.handle, owner, file)
                busy.append(p95(await latencies(asking, agent.handle, alice)))
    assert not _are_hurt(calm, busy), (calm, busy)


def _are_hurt(calm: list[float], busy: list[float]) -> bool:
    """True if asks took twice as long beside slow clients, and BUSY_MACHINE_S, in the middle of the rounds.

    An ask that waits for one of them takes DRIP_EVERY_S at least.
    """
    return statistics.median(busy) >= 2 * statistics.median(calm) + BUSY_MACHINE_S


async def nothing(client: SlowClient) -> None:
    """Not a word."""


async def endless_head(client: SlowClient) -> None:
    await client.drip(b"GET / HTTP/1.1\r\nX: " + b"x" * 1_000)


async def empty_lines(client: SlowClient) -> None:
    """A good request, and then nothing that begins another."""
    client.writer.write(f"GET /livez HTTP/1.1\r\n{HOST}\r\n".encode())
    await client.drip(b"\r\n" * 1_000)


async def rest_of_a_body(client: SlowClient) -> None:
    """A request that is answered before its body has come."""
    client.writer.write(head(rpc_path("no/body"), "x", 2_000_000))
    await client.drip(b"x" * 1_000)


async def takes_nothing(client: SlowClient, request: bytes) -> None:
    """Asks for more than the system's buffers hold, and reads none of it."""
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    client.writer.write(request)
    await asyncio.sleep(HEAD_S)
    await client.drip(b"\r\n" * 1_000)  # how it learns that the other end is gone


@pytest.mark.slow
async def test_who_does_not_finish_is_hung_up_on(embedded_hub: HubProcess) -> None:
    """All at once, because each takes its time."""
    owner = embedded_hub.mint("owner", "session")
    async with online(embedded_hub, Echo) as agent:
        request = get(await upload(embedded_hub, agent.session_id, owner), owner)
    ways = [nothing, endless_head, empty_lines, rest_of_a_body, partial(takes_nothing, request=request)]
    await asyncio.gather(*(check_hung_up(embedded_hub.url, way) for way in ways))


async def check_hung_up(url: str, way: Callable[[SlowClient], Awaitable[None]]) -> None:
    async with connection(url) as client:
        doing = asyncio.ensure_future(way(client))
        try:
            await asyncio.wait_for(client.ended(), HANGS_UP_WITHIN_S)
        except TimeoutError:
            raise AssertionError(f"{way} is still connected") from None
        finally:
            doing.cancel()


async def test_a_head_without_end_is_refused(embedded_hub: HubProcess) -> None:
    async with connection(embedded_hub.url) as client:
        client.writer.write(b"GET / HTTP/1.1\r\n" + b"X-More: of the same\r\n" * 4_000)
        assert b" 431 " in await client.reader.readline()


@pytest.mark.slow
async def test_no_client_is_hung_up_on_because_the_hub_stood_still(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    """As when its machine is moved, or a laptop sleeps. The server is the same on either home."""
    hub = start_hub(make_storage("embedded"))
    async with connection(hub.url) as client:
        await asyncio.sleep(0.3)  # the hub has it
        with hub.programs[0].paused():
            await asyncio.sleep(HEAD_S + 0.7)
        await asyncio.sleep(1.2)  # it looks once a second
        client.writer.write(f"GET /livez HTTP/1.1\r\n{HOST}\r\n".encode())
        assert b" 200 " in await client.reader.readline()
