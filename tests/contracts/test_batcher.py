"""Group commit: what waits while a batch is written, or while the writer pauses, is written together."""

import asyncio
from collections.abc import Sequence

from kit.batch_writer import Batcher


async def test_what_comes_in_a_pause_is_in_the_batch_after_it() -> None:
    written: list[Sequence[int]] = []
    resumed = asyncio.Event()

    async def write(items: Sequence[int]) -> None:
        written.append(list(items))

    async def pause() -> None:
        await resumed.wait()

    batcher = Batcher(write, pause=pause)
    adding = [asyncio.create_task(batcher.add(1))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    adding += [asyncio.create_task(batcher.add(number)) for number in (2, 3)]
    await asyncio.sleep(0)
    assert (written, batcher.waiting) == ([], 3)
    resumed.set()
    await asyncio.gather(*adding)
    assert written == [[1, 2, 3]]
