"""The sockets of one account are read at a pace, and those of other accounts beside it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from kit.account_pace import AT_ONCE_S, FRAME, ROUTED, TOGETHER_S, AccountPace, AccountPaces
from kit.sockets import SocketConsumer
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.gateway.client import GatewayClient

A_SECOND = 10_000
LATE_S = 0.3


async def test_an_account_that_sent_more_waits_and_no_other_does() -> None:
    paces, began = AccountPaces(A_SECOND), time.monotonic()
    paces.of(1).count(int(A_SECOND * (AT_ONCE_S + LATE_S)))
    assert paces.of(1).is_behind
    late = asyncio.create_task(paces.of(1).keep(1))
    await paces.of(2).keep(1)
    assert not late.done()
    await late
    assert time.monotonic() - began >= LATE_S


async def test_an_account_that_waits_has_several_frames_read_together() -> None:
    pace, began = AccountPace(A_SECOND), time.monotonic()
    pace.count(A_SECOND)
    waits = []
    for _ in range(50):
        before = time.monotonic()
        await pace.keep(A_SECOND // 100, at_least_s=TOGETHER_S)
        waits.append(time.monotonic() - before > 0.005)  # it would be a hundredth of a second each time
    assert time.monotonic() - began >= 0.45  # fifty hundredths of a second, but for the last
    assert sum(waits) <= 6


async def test_without_a_limit_nothing_waits() -> None:
    pace = AccountPace(0)
    pace.count(10**12)
    assert not pace.is_behind
    await asyncio.wait_for(pace.keep(10**12), timeout=0.1)


class Noted(SocketConsumer):
    """Notes the frames that it gets."""

    def __init__(self, pace: AccountPace) -> None:
        super().__init__()
        self.pace = pace
        self.got: list[str] = []

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        self.got.append(text_data or "")

    async def disconnect(self, code: int) -> None:
        """Nothing is to be cleaned up."""


async def frames(number: int) -> AsyncIterator[dict[str, Any]]:
    for count in range(number):
        yield {"type": "websocket.receive", "text": str(count)}
    yield {"type": "websocket.disconnect"}


async def test_two_sockets_of_an_account_share_its_pace() -> None:
    pace = AccountPace(FRAME * 20)  # twenty frames at once, and as many in each further second
    sockets = [Noted(pace), Noted(pace)]

    def receiving() -> Callable[[], Any]:
        return frames(12).__anext__

    async def send(message: object) -> None:
        raise AssertionError(message)

    began = time.monotonic()
    await asyncio.gather(*(one({"type": "websocket"}, receiving(), send) for one in sockets))
    assert [one.got for one in sockets] == [[str(count) for count in range(12)]] * 2
    assert time.monotonic() - began >= 0.1


@pytest.fixture(scope="module")
def paced_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    with HubProcess.start(make_storage("embedded"), SOCKET_BYTES_PER_SECOND=str(6 * ROUTED)) as hub:
        yield hub


async def test_an_agent_whose_owner_connects_many_waits_and_another_owners_does_not(paced_hub: HubProcess) -> None:
    tokens = [paced_hub.mint(login, "channel") for login in ("many", "one")]

    async def connect(token: str) -> float:
        async with ChannelAgent(paced_hub.url, token):
            return time.monotonic()

    began = time.monotonic()
    many = [asyncio.create_task(connect(tokens[0])) for _ in range(12)]
    alone = await connect(tokens[1])
    connected = await asyncio.gather(*many)
    assert alone - began < 2
    assert max(connected) - began > 2


async def test_a_frame_that_reads_rows_counts_more_and_no_other_owner_waits(paced_hub: HubProcess) -> None:
    busy_token, calm_token = (paced_hub.mint(login, "channel") for login in ("busy", "calm"))
    async with GatewayClient(paced_hub.url, busy_token) as busy, GatewayClient(paced_hub.url, calm_token) as calm:
        began = time.monotonic()
        asking = asyncio.gather(*(busy.request("gateway.status") for _ in range(18)))
        assert (await calm.request("gateway.status"))["status"] == "ok"
        assert not asking.done()
        assert [one["status"] for one in await asking] == ["ok"] * 18
        assert time.monotonic() - began >= 1.5
