"""Connections that threads have finished with, open for the next thread that wants one.

Django closes the connection of each request and of each call of `db_call`; those to PostgreSQL go back to their
pool. To open a connection, with its pragmas, its functions and the schema to read, takes about as long as the
queries of a request.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

MOST_KEPT = 4  # each may hold 2 MB of pages (`cache_size`)


class KeptConnections:
    """The kept connections of a process, which has one database. Any thread may call."""

    def __init__(self) -> None:
        self._connections: list[sqlite3.Connection] = []
        self._is_on = False

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep connections in the block, and close them after it: the last one writes the log into the file."""
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False
            while (connection := self.take()) is not None:
                connection.close()

    def take(self) -> sqlite3.Connection | None:
        """The connection that was given last."""
        try:
            return self._connections.pop()
        except IndexError:
            return None

    def give(self, connection: sqlite3.Connection) -> bool:
        """Keep a connection with which nothing is under way; False where that is not wanted."""
        if not self._is_on or len(self._connections) >= MOST_KEPT:
            return False
        self._connections.append(connection)
        return True


kept = KeptConnections()
