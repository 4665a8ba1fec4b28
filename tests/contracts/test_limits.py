"""The callers' rate, in memory and over a real Redis, by each process when Redis is gone; messages apart."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from agents.core.types import Ask, AskTarget
from agents.models.choices import Surface
from hub.caller_rate import MAX_SENDERS, MESSAGES_AT_ONCE, CallerRate
from hub.distributed import STORE_WITHIN_S, RedisRate
from lab.hub_storage import DistributedStorages
from lab.processes import free_port
from lab.proxy import Proxy, proxied
from tests.attempts import Attempts

MakeRate = Callable[..., CallerRate]


def ask(caller_id: int = 1, *, credential_id: int | None = None) -> Ask:
    """One ask of a caller; with a credential a message between agents of one owner."""
    return Ask(
        chat_id="c",
        target=AskTarget(None, 1, "owner/desk"),
        caller_id=caller_id,
        caller_login="owner",
        surface=Surface.A2A if credential_id is None else Surface.GATEWAY,
        question="what?",
        wait_s=60,
        credential_id=credential_id,
    )


@pytest.fixture
async def make_rate() -> AsyncIterator[MakeRate]:
    """Makes rates and closes them after the test."""
    made: list[CallerRate] = []

    def make(
        per_minute: int, redis_url: str = "", *, within_s: float = STORE_WITHIN_S, **options: Any
    ) -> CallerRate:
        shared = RedisRate(per_minute, redis_url, within_s=within_s) if redis_url else None
        made.append(CallerRate(per_minute, shared, **options))
        return made[-1]

    yield make
    for rate in made:
        await rate.close()


@pytest.fixture(params=["memory", pytest.param("redis", marks=[pytest.mark.distributed, pytest.mark.slow])])
def redis_url(request: pytest.FixtureRequest) -> str:
    if request.param == "memory":
        return ""
    homes: DistributedStorages = request.getfixturevalue("distributed_storages")
    return homes.servers.redis_url(502)


async def test_asks_of_venues_have_no_rate_of_their_own(make_rate: MakeRate, redis_url: str) -> None:
    rate = make_rate(1, redis_url)
    assert [await rate.retry_in_s(replace(ask(), surface=Surface.AGNT)) for _ in range(5)] == [0] * 5
    assert [await rate.retry_in_s(ask()), bool(await rate.retry_in_s(ask()))] == [0, True]


async def test_asks_within_the_rate_pass_and_the_next_is_told_how_long(
    make_rate: MakeRate, redis_url: str
) -> None:
    rate = make_rate(3, redis_url)
    assert [await rate.retry_in_s(ask()) for _ in range(3)] == [0, 0, 0]
    assert 1 <= await rate.retry_in_s(ask()) <= 60


async def test_each_caller_has_a_rate_of_their_own(make_rate: MakeRate, redis_url: str) -> None:
    rate = make_rate(1, redis_url)
    assert [await rate.retry_in_s(ask(caller)) for caller in (11, 12)] == [0, 0]


@pytest.mark.distributed
@pytest.mark.slow
async def test_the_rate_is_one_over_all_processes(
    make_rate: MakeRate, distributed_storages: DistributedStorages
) -> None:
    url = distributed_storages.servers.redis_url(503)
    first, second = make_rate(2, url), make_rate(2, url)
    assert [await first.retry_in_s(ask()), await second.retry_in_s(ask())] == [0, 0]
    assert await first.retry_in_s(ask())
    assert await second.retry_in_s(ask())


async def test_each_process_counts_for_itself_while_redis_is_out_of_reach(make_rate: MakeRate) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    for rate in (make_rate(2, url), make_rate(2, url)):
        assert [await rate.retry_in_s(ask()) for _ in range(2)] == [0, 0]
        assert 1 <= await rate.retry_in_s(ask()) <= 60


@pytest.fixture
def redis_behind_proxy(distributed_storages: DistributedStorages) -> Iterator[Proxy]:
    """A proxy before Redis, whose answers a test may delay or withhold."""
    with proxied(distributed_storages.servers.redis_port) as proxy:
        yield proxy


@pytest.mark.attack
@pytest.mark.distributed
@pytest.mark.slow
async def test_a_burst_passes_no_more_than_the_rate(
    make_rate: MakeRate, redis_behind_proxy: Proxy, attempts: Attempts
) -> None:
    rates = [make_rate(20, f"redis://127.0.0.1:{redis_behind_proxy.port}/504") for _ in range(2)]
    assert [await rate.retry_in_s(ask(99)) for rate in rates] == [0, 0]  # connected
    redis_behind_proxy.spoil(latency_s=0.02)  # one answer in 40 ms: all hundred take longer than one may
    waits = await asyncio.gather(*(rates[number % 2].retry_in_s(ask()) for number in range(100)))
    attack = "a burst of asks while Redis answers slowly, so that each process would count alone"
    attempts.count(attack, 100, max(0, waits.count(0) - 20))
    assert waits.count(0) == 20


@pytest.mark.attack
@pytest.mark.distributed
@pytest.mark.slow
async def test_a_redis_that_is_lost_leaves_a_process_what_it_let_pass(
    make_rate: MakeRate, redis_behind_proxy: Proxy, attempts: Attempts
) -> None:
    rate = make_rate(20, f"redis://127.0.0.1:{redis_behind_proxy.port}/505", within_s=0.2)
    assert [await rate.retry_in_s(ask()) for _ in range(15)] == [0] * 15
    redis_behind_proxy.silence()
    waits = await asyncio.gather(*(rate.retry_in_s(ask()) for _ in range(20)))
    attempts.count("asks while Redis is lost, beyond what was asked before", 20, max(0, waits.count(0) - 5))
    assert waits.count(0) == 5


async def test_no_limit_lets_every_caller_pass() -> None:
    rate = CallerRate(0)
    assert [await rate.retry_in_s(ask()) for _ in range(100)] == [0] * 100


async def test_messages_are_counted_by_credential_and_apart_from_other_asks(make_rate: MakeRate) -> None:
    clock = SimpleNamespace(now=0.0)
    rate = make_rate(1, f"redis://127.0.0.1:{free_port()}/0", clock=lambda: clock.now)
    messages = [await rate.retry_in_s(ask(credential_id=7)) for _ in range(int(MESSAGES_AT_ONCE) + 1)]
    assert messages == [0] * int(MESSAGES_AT_ONCE) + [1]
    assert await rate.retry_in_s(ask(credential_id=8)) == 0
    assert [await rate.retry_in_s(ask()) > 0 for _ in range(2)] == [False, True]
    clock.now += 0.1
    assert [await rate.retry_in_s(ask(credential_id=7)) for _ in range(11)] == [0] * 10 + [1]


async def test_of_too_many_senders_the_quietest_are_forgotten(make_rate: MakeRate) -> None:
    rate = make_rate(1, clock=lambda: 0.0)
    for sender in [0] * int(MESSAGES_AT_ONCE) + list(range(MAX_SENDERS)):
        await rate.retry_in_s(ask(credential_id=sender))
    assert await rate.retry_in_s(ask(credential_id=0)) == 1
    for sender in range(1, MAX_SENDERS + 1):
        await rate.retry_in_s(ask(credential_id=sender))
    assert await rate.retry_in_s(ask(credential_id=0)) == 0
