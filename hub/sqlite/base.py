"""Django's SQLite, by connections that a process keeps. Django wants the module and the class by these names."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from django.db.backends.sqlite3 import base

from hub.sqlite.kept import kept


class DatabaseWrapper(base.DatabaseWrapper):
    """The connection of one thread. After a request or a call it stays open for another thread."""

    connection: Any
    _is_over = False

    def get_new_connection(self, conn_params: Mapping[str, Any]) -> sqlite3.Connection:
        """A kept connection, or a new one."""
        opened: sqlite3.Connection = kept.take() or super().get_new_connection(conn_params)
        return opened

    def close_if_unusable_or_obsolete(self) -> None:
        """Django calls this at the end of a request or a call. A thread that closes its own wants a new one."""
        self._is_over = True
        try:
            super().close_if_unusable_or_obsolete()
        finally:
            self._is_over = False

    def _close(self) -> None:
        is_sound = self._is_over and not (self.errors_occurred or self.connection.in_transaction)
        if not (is_sound and kept.give(self.connection)):
            self.connection.close()
