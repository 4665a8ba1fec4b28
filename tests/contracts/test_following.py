"""A stream tells what happens to a task once and in order, whichever process the task's turns run in."""

import asyncio
from collections.abc import Sequence

from a2a_bridge.service.streams import TaskStreams
from a2a_bridge.service.tasks.feed import Feed, Feeds
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.requests import Subscribe
from a2a_bridge.wire.task import State, Task, TaskEvent, after
from tests.contracts.stored_tasks import Clock, chunk, keep, state, story, task, with_message


class Elsewhere:
    """A process that follows a task whose turn ran in another: both know the same store."""

    def __init__(self) -> None:
        self.store = MemoryTaskStore(Clock())
        self.feeds = Feeds()
        self.reader = TaskReader(self.store, self.feeds, reply_wait_s=60)

    async def continue_task(self, asking: Task, feed: Feed) -> Task:
        """The caller's answer comes in here, before a reader in this process looked into the store."""
        working = state(asking.seq + 1, State.WORKING)
        begun = after(with_message(asking, "this"), [working])
        assert await self.store.replace(begun, [working], expected_seq=asking.seq)
        feed.is_fed = True
        feed.add(begun, [working])
        return begun

    async def tell(self, now: Task, feed: Feed, events: Sequence[TaskEvent]) -> Task:
        became = after(now, events)
        await self.store.append(became, events)
        feed.add(became, events)
        return became

    async def follow(self, feed: Feed, seq: int) -> list[int]:
        """The events a stream tells after that one, to the end of the task."""
        streaming = TaskStreams(V1, Subscribe(task_id=feed.task.id), self.reader)
        told = streaming.of_feed(feed, seq)
        return [int(frame[0].rpartition(".")[2]) async for frame in told if frame is not None]


async def test_what_came_between_in_another_process_is_told_once_and_in_order() -> None:
    here = Elsewhere()
    await here.store.put(task())
    feed = here.feeds.of(task())
    asking = await keep(here.store, task(), story(chunks=3, end=State.INPUT_REQUIRED))
    early = asyncio.create_task(here.follow(feed, 0))
    now = await here.continue_task(asking, feed)
    late = asyncio.create_task(here.follow(feed, now.seq))
    now = await here.tell(now, feed, [chunk(now.seq + 1), state(now.seq + 2, State.COMPLETED)])
    async with asyncio.timeout(30):
        assert await early == list(range(1, now.seq + 1))
        assert await late == [now.seq - 1, now.seq]


async def test_a_task_that_jumped_is_shown_as_it_is_and_followed_from_there() -> None:
    here = Elsewhere()
    feed = here.feeds.of(task())
    jumped = after(task(), story(chunks=3, end=State.INPUT_REQUIRED))
    await here.store.put(jumped)  # its earlier events are not stored
    following = asyncio.create_task(here.follow(feed, 0))
    await asyncio.sleep(0)
    now = await here.continue_task(jumped, await here.reader.follow(jumped))
    await here.tell(now, feed, [state(now.seq + 1, State.COMPLETED)])
    async with asyncio.timeout(30):
        told = await following
    assert told[-1] == now.seq + 1
    assert told == sorted(set(told))


async def test_a_new_subscriber_sees_the_task_as_it_was_found() -> None:
    here = Elsewhere()
    await here.store.put(task())
    lingering = here.feeds.of(task())
    asking = await keep(here.store, task(), story(chunks=3, end=State.INPUT_REQUIRED))
    assert (await here.reader.follow(asking)) is lingering
    assert lingering.task == asking
    assert [event.seq for event in lingering.since(0) or ()] == list(range(1, asking.seq + 1))
