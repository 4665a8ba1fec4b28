"""The post between processes, over a real Redis."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agents.core.post import Final, LocalPost, Message, PostedChunk
from hub.distributed import RedisPost
from lab.hub_storage import DistributedStorages
from lab.processes import free_port
from lab.proxy import proxied
from lab.waiting import eventually


@pytest.fixture
async def posts(distributed_storages: DistributedStorages) -> AsyncIterator[tuple[RedisPost, RedisPost]]:
    url = distributed_storages.servers.redis_url(501)
    pair = RedisPost(url), RedisPost(url)
    yield pair
    for post in pair:
        await post.close()


@pytest.mark.distributed
@pytest.mark.slow
async def test_messages_arrive_whole_and_in_the_order_of_their_sender(posts: tuple[RedisPost, RedisPost]) -> None:
    here, there = posts
    arrived: list[Message] = []

    async def take(message: Message) -> None:
        arrived.append(message)

    await there.start("there", take)
    sent: list[Message] = [PostedChunk("c", number, f"piece {number} \U0001f980") for number in range(200)]
    sent.append(Final("c", 200, reply_to="here"))
    results = await asyncio.gather(*(here.send("there", message) for message in sent))
    assert all(results)

    async def all_came() -> bool:
        return len(arrived) == len(sent)

    await eventually(all_came, "every message")
    assert arrived == sent


@pytest.mark.distributed
@pytest.mark.slow
async def test_a_message_to_a_process_that_is_not_there_provably_is_dropped(
    posts: tuple[RedisPost, RedisPost],
) -> None:
    assert await posts[0].send("no-process", PostedChunk("c", 0, "x")) is False


@pytest.mark.distributed
@pytest.mark.slow
async def test_a_handler_that_raises_does_not_stop_the_post(posts: tuple[RedisPost, RedisPost]) -> None:
    here, there = posts
    arrived: list[Message] = []

    async def take(message: Message) -> None:
        arrived.append(message)
        if len(arrived) == 1:
            raise ValueError("first")

    await there.start("there", take)
    await here.send("there", PostedChunk("c", 0, "x"))
    await here.send("there", PostedChunk("c", 1, "y"))

    async def both() -> bool:
        return len(arrived) == 2

    await eventually(both, "the second message")


async def test_a_lost_redis_is_no_proof_that_nothing_left() -> None:
    post = RedisPost(f"redis://127.0.0.1:{free_port()}/0")
    assert await post.send("there", PostedChunk("c", 0, "x")) is True
    await post.close()


async def test_a_hub_of_one_process_reaches_no_other() -> None:
    assert await LocalPost().send("there", PostedChunk("c", 0, "x")) is False


@pytest.mark.distributed
@pytest.mark.slow
async def test_a_slow_redis_costs_its_delay_once_and_not_once_a_message(
    distributed_storages: DistributedStorages,
) -> None:
    """A hundred pieces and the end of a reply, each way 100 ms late: one by one they would take 20 s."""
    arrived: list[Message] = []

    async def take(message: Message) -> None:
        arrived.append(message)

    with proxied(distributed_storages.servers.redis_port) as proxy:
        post = RedisPost(f"redis://127.0.0.1:{proxy.port}/501")
        await post.start("there", take)
        proxy.spoil(latency_s=0.1)
        sent: list[Message] = [PostedChunk("c", number, "piece") for number in range(100)]
        sent.append(Final("c", 100, reply_to="here"))
        async with asyncio.timeout(10):
            for piece in sent[:-1]:
                await post.pass_on("there", piece)
            assert await post.send("there", sent[-1]) is True

            async def all_came() -> bool:
                return len(arrived) == len(sent)

            await eventually(all_came, "every message")
        await post.close()
    assert arrived == sent


@pytest.mark.distributed
@pytest.mark.slow
async def test_a_message_whose_answer_is_late_is_not_sent_again(distributed_storages: DistributedStorages) -> None:
    """A prompt that arrived twice would be answered twice."""
    arrived: list[Message] = []

    async def take(message: Message) -> None:
        arrived.append(message)

    with proxied(distributed_storages.servers.redis_port) as proxy:
        here = RedisPost(f"redis://127.0.0.1:{proxy.port}/501")
        there = RedisPost(distributed_storages.servers.redis_url(501))
        await there.start("there", take)
        await here.send("there", PostedChunk("c", 0, "before"))
        proxy.spoil(latency_s=1.2)  # there and back is more than a sender waits
        assert await here.send("there", PostedChunk("c", 1, "late")) is True
        proxy.heal()
        await asyncio.sleep(1.2)  # until a second try would have come as well

        async def the_last_came() -> bool:
            await here.send("there", Final("c", 2, reply_to="here"))
            return any(isinstance(message, Final) for message in arrived)

        await eventually(the_last_came, "the last message")
        await here.close()
        await there.close()
    assert [message.seq for message in arrived if isinstance(message, PostedChunk)] == [0, 1]
