"""Django's SQLite, by connections that a process keeps. Django wants the module and the class by these names."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db.backends.sqlite3 import base, schema
from django.db.models import Model

from kit.full_text import read_triggers
from kit.write_lock import write_lock

MAX_KEPT = 4  # each may hold 2 MB of pages (`cache_size`)


class KeptConnections:
    """The kept connections of a process, which has one database. Methods may be called in any thread."""

    def __init__(self) -> None:
        self._connections: list[sqlite3.Connection] = []
        self._is_on = False

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep connections in the block, and close them after it; closing the last one writes SQLite's log into
        the file.
        """
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False
            while (connection := self.take()) is not None:
                connection.close()

    def take(self) -> sqlite3.Connection | None:
        """The connection that was given last; None if there is none."""
        try:
            return self._connections.pop()
        except IndexError:
            return None

    def give(self, connection: sqlite3.Connection) -> bool:
        """Keep an idle connection; returns False if the connection is not kept."""
        if not self._is_on or len(self._connections) >= MAX_KEPT:
            return False
        self._connections.append(connection)
        return True


kept = KeptConnections()


class SchemaEditor(schema.DatabaseSchemaEditor):
    """Keeps a table's triggers, which fill its full text index, when a migration re-creates the table.

    Django re-creates a table to alter most columns on SQLite, and the triggers are dropped with the old table.
    """

    def _remake_table(self, model: type[Model], *args: Any, **options: Any) -> None:
        triggers = read_triggers(self.connection, model._meta.db_table)
        super()._remake_table(model, *args, **options)  # type: ignore[misc]  # the stubs leave it out
        for statement in triggers:
            self.execute(statement, params=None)


class DatabaseWrapper(base.DatabaseWrapper):
    """The connection of one thread. After a request or a call the connection stays open for another thread."""

    SchemaEditorClass = SchemaEditor
    connection: Any
    _is_over = False
    _has_turn = False  # to write, see `kit.write_lock`

    def get_new_connection(self, conn_params: Mapping[str, Any]) -> sqlite3.Connection:
        """A kept connection, or a new one."""
        opened: sqlite3.Connection = kept.take() or super().get_new_connection(conn_params)
        return opened

    def _start_transaction_under_autocommit(self) -> None:
        self._has_turn = write_lock.enter()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs leave it out
        except BaseException:
            self._end_turn()
            raise

    def _set_autocommit(self, autocommit: bool) -> None:
        """Django calls this with True at the end of each transaction, also of one that failed."""
        try:
            super()._set_autocommit(autocommit)  # type: ignore[misc]  # the stubs leave it out
        finally:
            if autocommit:
                self._end_turn()

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            write_lock.leave()

    def close_if_unusable_or_obsolete(self) -> None:
        """Django calls this at the end of a request or a call; only then is the connection kept: a thread that
        closes its connection wants a new one.
        """
        self._is_over = True
        try:
            super().close_if_unusable_or_obsolete()
        finally:
            self._is_over = False

    def _close(self) -> None:
        is_sound = self._is_over and not (self.errors_occurred or self.connection.in_transaction)
        try:
            if not (is_sound and kept.give(self.connection)):
                self.connection.close()
        finally:
            self._end_turn()
