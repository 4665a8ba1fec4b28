"""The post between processes, over a real Redis."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agents.post import Chunk, Final, LocalPost, Message
from hub.redis_post import RedisPost
from tests.homes import GrownHomes
from tests.servers import free_port
from tests.waiting import eventually


@pytest.fixture
async def posts(grown_homes: GrownHomes) -> AsyncIterator[tuple[RedisPost, RedisPost]]:
    url = grown_homes.servers.redis_url(501)
    pair = RedisPost(url), RedisPost(url)
    yield pair
    for post in pair:
        await post.close()


@pytest.mark.grown
@pytest.mark.slow
async def test_messages_arrive_whole_and_in_the_order_of_their_sender(posts: tuple[RedisPost, RedisPost]) -> None:
    here, there = posts
    arrived: list[Message] = []

    async def take(message: Message) -> None:
        arrived.append(message)

    await there.start("there", take)
    sent: list[Message] = [Chunk("c", number, f"piece {number} \U0001f980") for number in range(200)]
    sent.append(Final("c", 200, reply_to="here"))
    results = await asyncio.gather(*(here.send("there", message) for message in sent))
    assert all(results)

    async def all_came() -> bool:
        return len(arrived) == len(sent)

    await eventually(all_came, "every message")
    assert arrived == sent


@pytest.mark.grown
@pytest.mark.slow
async def test_a_message_to_a_process_that_is_not_there_provably_reaches_nobody(
    posts: tuple[RedisPost, RedisPost],
) -> None:
    assert await posts[0].send("nobody", Chunk("c", 0, "x")) is False


@pytest.mark.grown
@pytest.mark.slow
async def test_a_handler_that_raises_does_not_stop_the_post(posts: tuple[RedisPost, RedisPost]) -> None:
    here, there = posts
    arrived: list[Message] = []

    async def take(message: Message) -> None:
        arrived.append(message)
        if len(arrived) == 1:
            raise ValueError("first")

    await there.start("there", take)
    await here.send("there", Chunk("c", 0, "x"))
    await here.send("there", Chunk("c", 1, "y"))

    async def both() -> bool:
        return len(arrived) == 2

    await eventually(both, "the second message")


async def test_a_lost_redis_is_no_proof_that_nothing_left() -> None:
    post = RedisPost(f"redis://127.0.0.1:{free_port()}/0")
    assert await post.send("there", Chunk("c", 0, "x")) is True
    await post.close()


async def test_a_hub_of_one_process_reaches_no_other() -> None:
    assert await LocalPost().send("there", Chunk("c", 0, "x")) is False
