"""Copies the SQLite database of a hub to an empty PostgreSQL in one transaction, and verifies it before the
commit.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import AutoField, BinaryField, Model
from django.db.utils import ConnectionHandler

from kit import sql

TARGET = "target"
OPTIONS = {
    "options": "-c lock_timeout=4000 -c timezone=UTC",
    "application_name": "move_database",  # no sweep ends its transaction
    "connect_timeout": 5,
}
ROWS_AT_ONCE = 500
BINARY_ROWS_AT_ONCE = 4
TELL_EVERY = 20_000
NUL = "\0"
INSTEAD = "�"
MODULUS = 2**64
MADE_BY_MIGRATE: Sequence[type[Model]] = (Permission, ContentType)  # in the order they can be deleted

Tell = Callable[[str], None]


class CannotMove(Exception):
    """The target database stays as it was; the text says why."""


@dataclass(slots=True)
class Sum:
    """The number of rows of a table and the sum of their digests, which depend neither on the order nor on the
    database.
    """

    rows: int = 0
    total: int = 0

    def add(self, row: Sequence[Any]) -> None:
        """Count one more row."""
        digest = hashlib.blake2b(digest_size=8)
        for value in row:
            digest.update(_canonical(value))
            digest.update(b"\x1f")
        self.rows += 1
        self.total = (self.total + int.from_bytes(digest.digest())) % MODULUS

    def __str__(self) -> str:
        return f"{self.total:016x}"


@dataclass(frozen=True, slots=True)
class Moved:
    """One table: the sum of the rows read from SQLite (`here`), and of the rows read back from PostgreSQL
    (`there`).
    """

    table: str
    here: Sum
    there: Sum
    cleaned: int

    @property
    def is_right(self) -> bool:
        """True if every row is there, with every value."""
        return self.here == self.there


def open_target(database: dict[str, Any]) -> None:
    """Add the target to Django's databases: one connection, without the time limits of requests."""
    libpq = {name: value for name, value in database["OPTIONS"].items() if name != "pool"}
    alone = {**database, "OPTIONS": libpq | OPTIONS}
    connections.databases[TARGET] = ConnectionHandler({DEFAULT_DB_ALIAS: alone}).databases[DEFAULT_DB_ALIAS]


def move(tell: Tell) -> list[Moved]:
    """Copy every table to the target; nothing is kept there unless all of it is right.

    Raises:
        CannotMove: a database is of another release, or the target is not empty.
    """
    models = _models()
    _check_release(DEFAULT_DB_ALIAS, "start the hub on it once")
    _check_release(TARGET, "run `manage.py migrate` there")
    # no other transaction writes on either side meanwhile
    with transaction.atomic(), transaction.atomic(using=TARGET):
        _take(models)
        copied = [_copy(model, tell) for model in models]
        # Tables are copied by name, so rows may refer to tables that come
        # later; foreign keys are checked only here.
        connections[TARGET].check_constraints()
        _set_sequences(models)
        moved = [
            Moved(model._meta.db_table, here, _read_back(model, tell), cleaned)
            for model, (here, cleaned) in zip(models, copied, strict=True)
        ]
        if not all(one.is_right for one in moved):
            transaction.set_rollback(True, using=TARGET)
    return moved


def _check_release(alias: str, advice: str) -> None:
    """Check that the migrations of a database are those of this program.

    Raises:
        CannotMove: the database is of an older or a newer release.
    """
    executor = MigrationExecutor(connections[alias])
    name = "PostgreSQL" if alias == TARGET else "SQLite"
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CannotMove(f"the {name} database is of an older release: {advice} first")
    if set(executor.loader.applied_migrations) - set(executor.loader.disk_migrations):
        raise CannotMove(f"the {name} database is of a newer release than this program")


def _models() -> list[type[Model]]:
    known = apps.get_models(include_auto_created=True)
    return sorted(
        (model for model in known if model._meta.managed and not model._meta.proxy),
        key=lambda model: model._meta.db_table,
    )


def _take(models: Sequence[type[Model]]) -> None:
    """Lock the target's tables, and see that they hold nothing but what `migrate` puts there."""
    sql.lock_tables(TARGET, [model._meta.db_table for model in models])
    for model in models:
        if model not in MADE_BY_MIGRATE and model._base_manager.using(TARGET).exists():
            raise CannotMove(f"the PostgreSQL database is not empty: {model._meta.db_table} has rows")
    for model in MADE_BY_MIGRATE:
        model._base_manager.using(TARGET).all()._raw_delete(TARGET)


def _copy(model: type[Model], tell: Tell) -> tuple[Sum, int]:
    """Copy one table; returns its sum, and the number of values whose NUL was replaced, as PostgreSQL has none."""
    total, cleaned = Sum(), 0
    fields, count = model._meta.concrete_fields, model._base_manager.count()
    columns = [str(field.column) for field in fields]
    with sql.copy_in(TARGET, model._meta.db_table, columns) as copy:
        for row in _rows(model, DEFAULT_DB_ALIAS):
            clean = [_without_nul(value) for value in row]
            cleaned += sum(before != after for before, after in zip(row, clean, strict=True))
            copy.write_row(list(map(_stored, fields, clean)))
            total.add(clean)
            if total.rows % TELL_EVERY == 0:
                tell(f"{model._meta.db_table}: {total.rows} of {count}")
    tell(f"{model._meta.db_table}: {total.rows} rows")
    return total, cleaned


def _stored(field: Any, value: Any) -> Any:
    return field.get_db_prep_save(value, connection=connections[TARGET])


def _rows(model: type[Model], alias: str) -> Iterator[Sequence[Any]]:
    fields = model._meta.concrete_fields
    at_once = BINARY_ROWS_AT_ONCE if any(isinstance(one, BinaryField) for one in fields) else ROWS_AT_ONCE
    found = model._base_manager.using(alias).order_by("pk")
    return found.values_list(*(field.attname for field in fields)).iterator(chunk_size=at_once)


def _read_back(model: type[Model], tell: Tell) -> Sum:
    total = Sum()
    for row in _rows(model, TARGET):
        total.add(row)
    tell(f"{model._meta.db_table}: {total.rows} rows read back")
    return total


def _set_sequences(models: Sequence[type[Model]]) -> None:
    """Set each sequence after the highest id ever given: ids of deleted rows may still be referred to."""
    given = sql.sqlite_sequences()
    for model in models:
        key = model._meta.pk
        if isinstance(key, AutoField) and (last := given.get(model._meta.db_table)):
            sql.set_sequence(TARGET, model._meta.db_table, str(key.column), last)


def _without_nul(value: Any) -> Any:
    """A value as PostgreSQL can store it: each NUL is replaced by U+FFFD."""
    match value:
        case str():
            return value.replace(NUL, INSTEAD)
        case dict():
            return {_without_nul(key): _without_nul(inner) for key, inner in value.items()}
        case list():
            return [_without_nul(inner) for inner in value]
    return value


def _canonical(value: Any) -> bytes:
    match value:
        case bytes() | memoryview():
            return hashlib.blake2b(value).digest()
        case datetime():
            return value.astimezone(UTC).isoformat().encode()
        case dict() | list():
            return json.dumps(value, sort_keys=True).encode()
    return f"{type(value).__name__} {value}".encode()
