"""The callers' rate, in memory and over a real Redis; by each process for itself when Redis is gone."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from hub.limits import CallerRate, NoLimits
from lab.hub_storage import DistributedStorages
from lab.processes import free_port

MakeRate = Callable[..., CallerRate]


@pytest.fixture
async def make_rate() -> AsyncIterator[MakeRate]:
    """Makes rates and closes them after the test."""
    made: list[CallerRate] = []

    def make(per_minute: int, redis_url: str = "", **options: float) -> CallerRate:
        made.append(CallerRate(per_minute, redis_url, **options))
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


async def test_asks_within_the_rate_pass_and_the_next_is_told_how_long(
    make_rate: MakeRate, redis_url: str
) -> None:
    rate = make_rate(3, redis_url)
    assert [await rate.retry_in_s(1) for _ in range(3)] == [0, 0, 0]
    assert 1 <= await rate.retry_in_s(1) <= 60


async def test_each_caller_has_a_rate_of_their_own(make_rate: MakeRate, redis_url: str) -> None:
    rate = make_rate(1, redis_url)
    assert [await rate.retry_in_s(caller) for caller in (11, 12)] == [0, 0]


@pytest.mark.distributed
@pytest.mark.slow
async def test_the_rate_is_one_over_all_processes(
    make_rate: MakeRate, distributed_storages: DistributedStorages
) -> None:
    url = distributed_storages.servers.redis_url(503)
    first, second = make_rate(2, url), make_rate(2, url)
    assert [await first.retry_in_s(1), await second.retry_in_s(1)] == [0, 0]
    assert await first.retry_in_s(1)
    assert await second.retry_in_s(1)


async def test_each_process_counts_for_itself_while_redis_is_out_of_reach(make_rate: MakeRate) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    for rate in (make_rate(2, url), make_rate(2, url)):
        assert [await rate.retry_in_s(1) for _ in range(2)] == [0, 0]
        assert 1 <= await rate.retry_in_s(1) <= 60


@pytest.mark.distributed
@pytest.mark.slow
async def test_a_burst_passes_no_more_than_the_rate(
    make_rate: MakeRate, distributed_storages: DistributedStorages
) -> None:
    url = distributed_storages.servers.redis_url(504)
    # On a busy machine a hundred answers take over a second.
    rates = [make_rate(20, url, store_within_s=30.0) for _ in range(2)]
    assert [await rate.retry_in_s(99) for rate in rates] == [0, 0]  # connected
    waits = await asyncio.gather(*(rates[number % 2].retry_in_s(1) for number in range(100)))
    assert waits.count(0) == 20


async def test_no_limit_lets_every_caller_pass() -> None:
    assert [await NoLimits().retry_in_s(1) for _ in range(100)] == [0] * 100
