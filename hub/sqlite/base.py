"""Django's SQLite, by connections that a process keeps. Django wants the module and the class by these names."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from django.db.backends.sqlite3 import base

from hub.sqlite.kept import kept


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of one thread. Closed in order, it stays open for another."""

    connection: Any

    def get_new_connection(self, conn_params: Mapping[str, Any]) -> sqlite3.Connection:
        """A kept connection, or a new one."""
        opened: sqlite3.Connection = kept.take() or super().get_new_connection(conn_params)
        return opened

    def _close(self) -> None:
        is_under_way = self.in_atomic_block or self.errors_occurred or self.connection.in_transaction
        if is_under_way or not kept.give(self.connection):
            self.connection.close()
