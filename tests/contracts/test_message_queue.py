"""Messages of a socket come to its one reader once and in order."""

import asyncio

import pytest

from hub.socket_protocol import MessageQueue


async def test_messages_come_in_order_whether_they_were_there_first_or_the_reader() -> None:
    queue = MessageQueue()
    queue.put_nowait(1)
    queue.put_nowait(2)
    assert [await queue.get(), await queue.get(), queue.empty()] == [1, 2, True]
    reading = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.put_nowait(3)
    queue.put_nowait(4)
    assert [await reading, await queue.get()] == [3, 4]


async def test_a_reader_that_is_cancelled_takes_nothing_with_it() -> None:
    queue = MessageQueue()
    reading = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    reading.cancel()
    queue.put_nowait(1)
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await queue.get() == 1
