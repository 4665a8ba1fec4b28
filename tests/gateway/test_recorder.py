"""The recorder of sessions: what its process holds is written, however long the database takes no writes."""

import asyncio
from collections.abc import Sequence

import pytest
from django.db import OperationalError

from gateway.service.session_entries import LogEntry, Place, PlacedEntry
from gateway.service.session_recording import SessionRecorder
from kit.batch_writer import TRIES

WITHIN_S = 30


class Database:
    """Takes no writes until it is back. `has_failed`: it refused the recorder several times."""

    def __init__(self) -> None:
        self.is_back = False
        self.refused = 0
        self.has_failed = asyncio.Event()
        self.written: list[object] = []
        self._loop = asyncio.get_running_loop()

    def write(self, records: Sequence[PlacedEntry]) -> None:
        """See `gateway.service.session_recording.write_or_log`."""
        if not self.is_back:
            self.refused += 1
            if self.refused > 2 * TRIES:
                self._loop.call_soon_threadsafe(self.has_failed.set)
            raise OperationalError("database is locked")
        self.written += [record.entry.content for record in records]


def record(text: str) -> PlacedEntry:
    place = Place(owner_id=1, agents=("beta",), writer="alpha", recipient="beta", session_id="s-1")
    return PlacedEntry(place, LogEntry(timestamp_ms=1, role="user", content=text), text, text)


@pytest.mark.django_db
async def test_entries_are_written_when_the_database_is_back_however_late(
    caplog: pytest.LogCaptureFixture,
) -> None:
    database = Database()
    recording = SessionRecorder("p", database.write, retry_s=0.001)
    async with asyncio.timeout(WITHIN_S):
        recording.put(record("one"), 3)
        await database.has_failed.wait()
        await recording.flush(0.001)  # a client that reads does not wait for ever
        recording.put(record("two"), 3)
        database.is_back = True
        await recording.close()
    assert database.written == ["one", "two"]
    assert [one.msg for one in caplog.records] == ["batch_writer.waits"]


@pytest.mark.django_db
async def test_a_process_that_ends_does_not_wait_for_a_database_that_is_away() -> None:
    database = Database()
    recording = SessionRecorder("p", database.write, retry_s=0.001)
    async with asyncio.timeout(WITHIN_S):
        recording.put(record("one"), 3)
        await recording.close()
    assert database.refused >= TRIES
    assert database.written == []
