"""The frames that wait for a client that reads slowly: in order, bounded, and gone once the queue is closed."""

import asyncio

import pytest

from kit.frame_queue import CROWDED_FRAMES, MAX_BYTES, MAX_FRAMES, FrameQueue


@pytest.mark.parametrize(("frame", "most"), [(b"x", MAX_FRAMES), (b"x" * (MAX_BYTES // 4), 4)])
def test_a_queue_over_its_limits_is_closed(frame: bytes, most: int) -> None:
    queue = FrameQueue()
    assert all(queue.put(frame) for _ in range(most))
    assert not queue.put(frame)
    assert (len(queue), queue.put(b"later")) == (0, False)


async def test_frames_are_sent_in_order_and_make_room() -> None:
    queue, sent, may_send = FrameQueue(), [], asyncio.Event()

    async def send(frame: bytes) -> None:
        await may_send.wait()
        sent.append(frame)

    wanted = [str(number).encode() for number in range(CROWDED_FRAMES + 1)]
    for frame in wanted:
        assert queue.put(frame)
    sending = asyncio.create_task(queue.send_all(send))
    waiting = asyncio.create_task(queue.wait_for_room(30))
    await asyncio.sleep(0)
    assert not queue.has_room
    may_send.set()
    await asyncio.gather(sending, waiting)
    assert sent == wanted


async def test_closing_wakes_who_waits_and_drops_what_waits() -> None:
    queue = FrameQueue()
    for _ in range(CROWDED_FRAMES):
        queue.put(b"x")
    waiting = asyncio.create_task(queue.wait_for_room(30))
    await asyncio.sleep(0)
    queue.close()
    async with asyncio.timeout(10):
        await waiting
    assert (len(queue), queue.has_room) == (0, True)
