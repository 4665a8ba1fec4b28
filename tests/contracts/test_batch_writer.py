"""The batch writer: each item is written once, whatever the database does, and closing leaves none behind."""

import asyncio
import itertools
import time
from collections.abc import Sequence

import pytest
from django.db import DataError, OperationalError

from kit.batch_writer import BatchWriter

BAD = 13
WITHIN_S = 30


class Table:
    """Takes numbers, but not BAD. `outages`: after how many writes the database is away once."""

    def __init__(self, outages: Sequence[int] = ()) -> None:
        self.rows: list[int] = []
        self.refused: list[int] = []
        self._left = list(outages)
        self._writes = 0

    def write(self, numbers: Sequence[int]) -> None:
        self._writes += 1
        if self._left and self._writes > self._left[0]:
            self._left.pop(0)
            raise OperationalError("away")
        if BAD in numbers:
            raise DataError("bad")
        self.rows += numbers

    def refuse(self, number: int, failure: Exception) -> None:
        self.refused.append(number)

    def writer(self) -> BatchWriter[int]:
        return BatchWriter(
            "numbers", self.write, at_once=10, pause_s=0, most_waiting=100, retry_s=0.001, refused=self.refuse
        )


@pytest.mark.django_db
async def test_an_outage_while_items_are_written_one_by_one_writes_none_twice() -> None:
    table = Table(outages=[2])
    writer = table.writer()
    for number in (1, BAD, 3):
        writer.put(number)
    async with asyncio.timeout(WITHIN_S):
        await writer.close()
    assert (table.rows, table.refused) == ([1, 3], [BAD])


@pytest.mark.django_db
async def test_what_comes_while_the_writer_closes_is_written() -> None:
    table = Table(outages=[0])
    writer = table.writer()
    writer.put(1)
    closing = asyncio.create_task(writer.close())
    await asyncio.sleep(0)
    writer.put(2)
    async with asyncio.timeout(WITHIN_S):
        await closing
    assert table.rows == [1, 2]


@pytest.mark.django_db
async def test_a_write_that_fails_for_another_reason_stops_neither_later_ones_nor_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = Table()

    def write(numbers: Sequence[int]) -> None:
        if numbers == [1]:
            raise ValueError(numbers)
        table.write(numbers)

    writer: BatchWriter[int] = BatchWriter("numbers", write, at_once=1, pause_s=0, most_waiting=2)
    writer.put(1)
    writer.put(2)
    async with asyncio.timeout(WITHIN_S):
        await writer.wait_for_room()
        await writer.flush()
        await writer.close()
    assert table.rows == [2]
    assert [one.msg for one in caplog.records] == ["batch_writer.lost"]


class Noted:
    """Notes when each transaction began; each takes `took_s`, in which nothing else runs."""

    def __init__(self, took_s: float = 0.0) -> None:
        self.began: list[float] = []
        self._took_s = took_s

    def write(self, numbers: Sequence[int]) -> None:
        self.began.append(time.monotonic())
        time.sleep(self._took_s)

    @property
    def pauses_s(self) -> list[float]:
        return [later - earlier for earlier, later in itertools.pairwise(self.began)]


@pytest.mark.django_db
async def test_the_transactions_of_a_batch_are_spread_over_its_pause() -> None:
    noted = Noted()
    writer: BatchWriter[int] = BatchWriter("numbers", noted.write, at_once=10, pause_s=0.4, most_waiting=100)
    for number in range(35):
        writer.put(number)
    async with asyncio.timeout(WITHIN_S):
        while len(noted.began) < 4:
            await asyncio.sleep(0.01)
        await writer.close()
    assert min(noted.pauses_s) >= 0.09


@pytest.mark.django_db
async def test_a_writer_rests_for_its_share_and_not_when_it_closes() -> None:
    noted = Noted(took_s=0.02)
    writer: BatchWriter[int] = BatchWriter(
        "numbers", noted.write, at_once=1, pause_s=0, most_waiting=100, most_share=0.25
    )
    for number in range(4):
        writer.put(number)
    async with asyncio.timeout(WITHIN_S):
        while len(noted.began) < 4:
            await asyncio.sleep(0.01)
        assert min(noted.pauses_s) >= 0.08
        for number in range(10):
            writer.put(number)
        began = time.monotonic()
        await writer.close()
    assert len(noted.began) == 14
    assert time.monotonic() - began < 10 * 0.08


@pytest.mark.django_db
async def test_a_rest_is_bounded_after_a_write_that_took_long() -> None:
    """As a write does that waits for a database that is away."""
    table = Table()
    writer = BatchWriter("numbers", table.write, at_once=10, pause_s=0, most_waiting=100, most_share=1e-9)
    async with asyncio.timeout(WITHIN_S):
        for number in (1, 2):
            writer.put(number)
            while number not in table.rows:
                await asyncio.sleep(0.01)
        await writer.close()
