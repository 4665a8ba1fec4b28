"""A deadline that costs nothing where nothing is waited for, and holds where something is."""

import asyncio

import pytest

from kit.tasks import Waiters, wait_within


async def test_what_never_waits_is_done_without_a_timer() -> None:
    async def work() -> int:
        return 7

    assert await wait_within(work(), 0) == 7


async def test_what_waits_is_done_in_time_or_cancelled() -> None:
    seen: list[str] = []

    async def work(seconds: float) -> str:
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            seen.append("tidied up")
            raise
        return "done"

    assert await wait_within(work(0.01), 5) == "done"
    with pytest.raises(TimeoutError):
        await wait_within(work(30), 0.05)
    assert seen == ["cancelled", "tidied up"]


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_a_failure_is_the_callers(turns: int) -> None:
    async def work() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await wait_within(work(), 5)


async def test_who_is_cancelled_meanwhile_cancels_it() -> None:
    left = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            left.set()

    waiting = asyncio.ensure_future(wait_within(work(), 30))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert left.is_set()


async def test_one_that_was_cancelled_may_still_return() -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "kept"
        return "slept"

    waiting = asyncio.ensure_future(wait_within(work(), 30))
    await asyncio.sleep(0)
    waiting.cancel()
    assert await waiting == "kept"


async def test_each_that_waits_is_woken_or_gives_up_after_its_own_time() -> None:
    waiters = Waiters()
    patient = [asyncio.ensure_future(waiters.wait(5)) for _ in range(3)]
    assert not await waiters.wait(0.01)
    waiters.wake()
    waiters.wake()
    assert await asyncio.gather(*patient) == [True] * 3
    assert not waiters


async def test_one_that_is_cancelled_while_it_waits_leaves_the_others_waiting() -> None:
    waiters = Waiters()
    one, other = (asyncio.ensure_future(waiters.wait(5)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    assert len(waiters) == 1
    waiters.wake()
    assert await other
