"""The database that a hub moves to, and whether it and ours are of this release."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import ConnectionHandler

TARGET = "target"
OPTIONS = {"options": "-c lock_timeout=4000 -c timezone=UTC", "connect_timeout": 5}


class CannotMove(Exception):
    """Nothing was written; the text says why."""


def open_target(database: dict[str, Any]) -> None:
    """Make a database known as the target: one connection, without the time limits of requests."""
    libpq = {name: value for name, value in database["OPTIONS"].items() if name != "pool"}
    alone = {**database, "OPTIONS": libpq | OPTIONS}
    connections.databases[TARGET] = ConnectionHandler({DEFAULT_DB_ALIAS: alone}).databases[DEFAULT_DB_ALIAS]


def check_release(alias: str, advice: str) -> None:
    """See that a database has the tables of this program, no others.

    Raises:
        CannotMove: it has not.
    """
    executor = MigrationExecutor(connections[alias])
    name = "PostgreSQL" if alias == TARGET else "SQLite"
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CannotMove(f"the {name} database is of an older release: {advice} first")
    if set(executor.loader.applied_migrations) - set(executor.loader.disk_migrations):
        raise CannotMove(f"the {name} database is of a newer release than this program")
