"""A stream tells what happens to a task once and in order, whichever process the task's turns run in."""

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from a2a_bridge.service.streams import TaskStreams
from a2a_bridge.service.tasks.feed import Feed, Feeds
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.pieces import closing
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.wire.dialects.v03 import V03
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.requests import FollowTask
from a2a_bridge.wire.task import State, Task, TaskEvent, after
from tests.contracts.stored_tasks import Clock, chunk, keep, state, story, task, with_message


class Elsewhere:
    """A process that follows a task whose turn ran in another: both know the same store."""

    def __init__(self) -> None:
        self.store = MemoryTaskStore(Clock())
        self.feeds = Feeds()
        self.reader = TaskReader(StoresById(self.store, {}), self.feeds, reply_wait_s=60)

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
        streaming = TaskStreams(V1, FollowTask(task_id=feed.task.id), self.reader)
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


async def test_what_was_missed_may_be_further_on_than_the_task_that_was_found() -> None:
    """The store got more between the look at the task and the look at its events: the end is told as the end."""
    here = Elsewhere()
    await here.store.put(task())
    found = await keep(here.store, task(), story(chunks=2, end=State.WORKING))
    feed = await here.reader.follow(found)
    last = chunk(found.seq + 1)
    so_far = after(found, [last])
    ends = [*closing(so_far, [so_far.reply_id], last.at), state(found.seq + 3, State.COMPLETED)]
    now = await keep(here.store, found, [last, *ends])
    missed = await here.store.events_after(found, 0)
    assert missed is not None
    assert now.reply is not None
    for dialect in (V1, V03):
        streaming = TaskStreams(dialect, FollowTask(task_id=found.id), here.reader)
        async with asyncio.timeout(30):
            told = [frame async for frame in streaming.again(feed, missed, 0) if frame is not None]
        shown: list[dict[str, Any]] = [to_builtins(frame) for _, frame in told]
        if dialect is V03:
            assert [one["final"] for one in shown if "final" in one] == [False, False, True]
        else:
            whole = shown[-2]["artifactUpdate"]["artifact"]["parts"]
            assert [part["text"] for part in whole] == [part.text for part in now.reply.parts]
