"""Sockets whose clients send no token: closed after a deadline, and bounded for each address."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accounts.open_requests import PER_ADDRESS, UnsignedSockets
from lab.callers import bearer
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.gateway.client import GatewayClient
from tests.gateway.test_tokens import expire, mint

TOO_MANY = 20
OPENED = PER_ADDRESS + TOO_MANY
CLOSED_WITHIN_S = 60
_networks = itertools.count(1)


def scope_of(address: str) -> dict[str, object]:
    return {"client": (address, 1)}


def test_each_address_has_so_many_sockets_and_one_network_of_ipv6_is_one_address() -> None:
    unsigned = UnsignedSockets(2)
    assert [unsigned.enter(name, scope_of("192.0.2.1")) for name in "abb"] == [True, True, True]
    assert not unsigned.enter("c", scope_of("192.0.2.1"))
    assert unsigned.enter("c", scope_of("192.0.2.2"))
    for name in "aa":  # again is nothing
        unsigned.leave(name)
    assert [unsigned.enter(name, scope_of("192.0.2.1")) for name in "de"] == [True, False]
    assert [unsigned.enter(f"v6-{end}", scope_of(f"2001:db8::{end}")) for end in (1, 2, 3)] == [True, True, False]
    assert unsigned.enter("no address", {"client": None})


@pytest.fixture(scope="module")
def real_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub whose deadlines are not shortened: none passes while sockets are opened.

    Each test connects from an address of its own, which a trusted proxy names.
    """
    hub = HubProcess.start(make_storage("embedded"), TRUSTED_PROXIES="127.0.0.1", TEST_TIME_SCALE="1")
    yield hub
    hub.stop()


@pytest.fixture
def origin() -> dict[str, str]:
    """The header that names an address of the test's own."""
    return {"X-Forwarded-For": f"2001:db8:{next(_networks):x}::1"}


async def open_one(stack: AsyncExitStack, address: str, **headers: str) -> ClientConnection | int:
    """Open a socket; the HTTP status when it is refused."""
    try:
        opening = connect(address, compression=None, ping_interval=None, additional_headers=headers)
        return await stack.enter_async_context(opening)
    except InvalidStatus as refusal:
        return refusal.response.status_code


async def open_many(
    stack: AsyncExitStack, address: str, count: int, **headers: str
) -> list[ClientConnection | int]:
    return await asyncio.gather(*(open_one(stack, address, **headers) for _ in range(count)))


async def read_to_its_end(socket: ClientConnection) -> list[Json]:
    """The frames of a socket until it was closed."""
    frames: list[Json] = []
    with suppress(ConnectionClosed):
        while True:
            frames.append(json.loads(await socket.recv()))
    return frames


@pytest.mark.parametrize(("path", "kind"), [("/gateway", "session"), ("/channel", "channel")])
async def test_sockets_without_a_token_are_bounded_for_their_address(
    real_hub: HubProcess, origin: dict[str, str], path: str, kind: str
) -> None:
    address = real_hub.url.replace("http", "ws", 1) + path
    signed = origin | bearer(real_hub.mint("has-a-token", kind))
    async with AsyncExitStack() as stack:
        opened = await open_many(stack, address, OPENED, **origin)
        refused = [one for one in opened if isinstance(one, int)]
        assert (len(refused), set(refused)) == (OPENED - PER_ADDRESS, {429})
        # A client with a token is let in all the same, and one of another address.
        assert not isinstance(await open_one(stack, address, **signed), int)
        assert not isinstance(await open_one(stack, address, **{"X-Forwarded-For": "192.0.2.7"}), int)
        assert await open_one(stack, address, **origin) == 429
        waiting = next(one for one in opened if not isinstance(one, int))
        await waiting.close()

        async def is_let_in() -> bool:
            return not isinstance(await open_one(stack, address, **origin), int)

        await eventually(is_let_in, "a socket is let in for one that left")


@pytest.mark.parametrize(("path", "flaw", "code"), [("/gateway", 5002, 4001), ("/channel", "auth_failed", 1008)])
async def test_sockets_with_a_wrong_token_are_closed_at_once(
    real_hub: HubProcess, origin: dict[str, str], path: str, flaw: object, code: int
) -> None:
    """No socket waits or is counted: sockets of that address are let in afterwards."""
    address = real_hub.url.replace("http", "ws", 1) + path
    async with AsyncExitStack() as stack, asyncio.timeout(CLOSED_WITHIN_S):
        opened = await open_many(stack, address, OPENED, **origin, **bearer("cw_chan_unknown"))
        said = await asyncio.gather(*(read_to_its_end(one) for one in opened if not isinstance(one, int)))
        assert len(said) == OPENED
        for frames in said:  # not the flaw of a socket whose deadline passed
            shown = frames[-1].get("content", frames[-1])
            assert flaw in (shown["code"], shown.get("error"))
        assert {one.close_code for one in opened if not isinstance(one, int)} == {code}
        assert not isinstance(await open_one(stack, address, **origin), int)


async def test_sockets_with_an_expired_token_are_bounded_for_their_address(
    real_hub: HubProcess, origin: dict[str, str]
) -> None:
    """Such sockets wait for another token, as sockets without a token do."""
    expired = await mint(real_hub, "had-a-token", scopes=["ask", "read"], format="jwt", expires_in=3600)
    expire(real_hub, expired, -1)
    address = real_hub.url.replace("http", "ws", 1) + "/gateway"
    async with AsyncExitStack() as stack:
        opened = await open_many(stack, address, PER_ADDRESS + TOO_MANY, **origin, **bearer(expired["token"]))
        sockets = [one for one in opened if not isinstance(one, int)]
        assert len(sockets) == PER_ADDRESS + TOO_MANY

        async def has_closed_some() -> bool:
            return len([one for one in sockets if one.close_code is not None]) >= TOO_MANY

        await eventually(has_closed_some, "sockets beyond the bound are closed")
        closed = [one.close_code for one in sockets if one.close_code is not None]
        assert closed == [1013] * TOO_MANY
        assert await open_one(stack, address, **origin) == 429


@pytest.mark.parametrize(
    ("path", "code"), [("/gateway?timeout=1000", 4001), ("/gateway", 4001), ("/channel", 1008)]
)
async def test_sockets_without_a_token_are_closed_after_the_deadline(
    embedded_hub: HubProcess, path: str, code: int
) -> None:
    address = embedded_hub.url.replace("http", "ws", 1) + path
    async with AsyncExitStack() as stack:
        for count in (PER_ADDRESS, 1):  # the second is let in: the first leave their places
            opened = [one for one in await open_many(stack, address, count) if not isinstance(one, int)]
            assert len(opened) == count
            async with asyncio.timeout(CLOSED_WITHIN_S):
                await asyncio.gather(*(one.wait_closed() for one in opened))
            assert {one.close_code for one in opened} == {code}


async def test_a_token_in_a_frame_leaves_room_for_another_socket(real_hub: HubProcess) -> None:
    token = real_hub.mint("signs-in-later", "session")
    async with AsyncExitStack() as stack:
        clients = [GatewayClient(real_hub.url) for _ in range(2)]
        for client in clients:
            await stack.enter_async_context(client)
        address = real_hub.url.replace("http", "ws", 1) + "/gateway"
        opened = await open_many(stack, address, PER_ADDRESS - 2)
        assert not any(isinstance(one, int) for one in opened)
        assert await open_one(stack, address) == 429
        await clients[0].send("auth", {"token": token})
        await clients[0].find("auth-response")
        assert not isinstance(await open_one(stack, address), int)
