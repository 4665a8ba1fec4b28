"""A full disk: asks are refused, the ends of those that were admitted are written."""

import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.db import connection

from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.core.ledger.disk_reserve import DiskReserve
from agents.core.types import OpenTurn
from agents.models import Turn
from agents.models.choices import Outcome
from kit.async_db import db_call
from tests.contracts.rows import COMPLETED, HOME, ask, published, settling

MIB = 1_048_576


class Pages(DiskReserve):
    """A reserve of pages of the database file, which SQLite itself refuses to grow beyond."""

    def __init__(self) -> None:
        super().__init__(Path(), 0)
        self._before = str(connection.settings_dict["OPTIONS"].get("init_command", ""))
        self.has_room = True
        self.is_kept = True

    def limit(self, more: int) -> None:
        """From the next connection on the database may grow by so many pages."""
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")  # no page is free inside the file
            cursor.execute("PRAGMA page_count")
            (pages,) = cursor.fetchone()
        command = f"{self._before}; PRAGMA max_page_count={pages + more}"
        connection.settings_dict["OPTIONS"]["init_command"] = command

    def fill(self) -> bool:
        self.is_kept = self.is_kept or self.has_room
        return self.is_kept

    def spend(self) -> None:
        self.is_kept = self.has_room = False
        self.close()

    def close(self) -> None:
        connection.settings_dict["OPTIONS"]["init_command"] = self._before


@pytest.fixture
def pages(transactional_db: None) -> Iterator[Pages]:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has a disk of its own")
    reserve = Pages()
    yield reserve
    reserve.close()


@pytest.fixture
def ledger(pages: Pages) -> Iterator[Ledger]:
    serving = Ledger(home=HOME, reserve=pages)
    yield serving
    serving.close()


@pytest.mark.slow
async def test_ends_are_written_when_asks_are_refused(pages: Pages, ledger: Ledger) -> None:
    agent = await db_call(lambda: published(concurrency_cap=100))()
    asks = await db_call(lambda: [ask(agent) for _ in range(90)])()
    await db_call(pages.limit)(2)
    admitted: list[OpenTurn] = []
    with suppress(Unavailable):
        while True:
            admitted += [await ledger.admit(asks[len(admitted)])]
    assert admitted
    assert not pages.is_kept
    with pytest.raises(Unavailable):
        await ledger.admit(asks[-1])
    for turn in admitted:
        assert (await settling(ledger, turn, COMPLETED)).outcome is Outcome.COMPLETED
    pages.has_room = True
    await ledger.admit(asks[-1])
    assert await db_call(Turn.objects.filter(outcome="completed").count)() == len(admitted)


def test_a_reserve_is_a_file_that_is_there_or_not(tmp_path: Path) -> None:
    reserve, path = DiskReserve(tmp_path / "reserve", 2 * MIB), tmp_path / "reserve"
    assert reserve.fill()
    assert path.stat().st_blocks * 512 >= 2 * MIB
    reserve.spend()
    reserve.spend()
    assert not path.exists()


def test_a_reserve_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    reserve = DiskReserve(tmp_path / "reserve", 2 * MIB)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        assert not reserve.fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "reserve").exists()
