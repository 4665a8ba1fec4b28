"""Writes records of messages to sessions, in batches in a thread (docs/adr/0138).

The database has each record before (docs/adr/0153): a process that is killed loses none.
"""

from collections.abc import Callable, Sequence

from gateway.service.sessions.entries import Record
from gateway.service.sessions.writing import write_or_log
from kit.batch_writer import RETRY_S, BatchWriter

PAUSE_S = 0.25  # on SQLite each batch takes the one write lock, which turns need, too
MOST_WAITING_BYTES = 33_554_432
MOST_AT_ONCE = 200  # messages of a transaction


class SessionRecorder(BatchWriter[Record]):
    """The messages of one process that are yet to be written; the size of an item is in bytes.

    A process that ends while the database is away leaves the rest to another process.
    """

    def __init__(
        self,
        process_id: str,
        write_records: Callable[[Sequence[Record]], object] = write_or_log,
        retry_s: float = RETRY_S,
    ) -> None:
        super().__init__(
            "sessions",
            write_records,
            at_once=MOST_AT_ONCE,
            pause_s=PAUSE_S,
            most_waiting=MOST_WAITING_BYTES,
            retry_s=retry_s,
        )
        self.process_id = process_id
