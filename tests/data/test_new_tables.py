"""A new embedded hub gets its tables at once: the same as those that the migrations make."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from lab.hub_storage import SQLITE_FILE, EmbeddedStorages, HubStorage, embedded_storage, manage

BRING_UP_TO_DATE = "from hub.embedded_schema import bring_up_to_date; bring_up_to_date()"
SHOW_MIGRATIONS = "import sys; print([name for name in sys.modules if '.migrations.0' in name])"
WITHOUT_NUMBERS = {
    "auth_permission": "name, codename",
    "django_content_type": "app_label, model",
    "django_migrations": "app, name",
}


def read(storage: HubStorage, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(storage.folder / SQLITE_FILE)) as database, database:
        return database.execute(statement).fetchall()


def tables_of(storage: HubStorage) -> dict[str, Any]:
    """By name: the columns, foreign keys and SQL parts of each table, and the SQL of each index."""
    found: dict[str, Any] = {}
    for kind, name, table, text in read(storage, "SELECT type, name, tbl_name, sql FROM sqlite_master"):
        found[name] = kind, table, text
        if kind == "table":
            columns = sorted(row[1:] for row in read(storage, f"PRAGMA table_info('{name}')"))
            keys = sorted(row[2:] for row in read(storage, f"PRAGMA foreign_key_list('{name}')"))
            found[name] = columns, keys, sorted(text.partition("(")[2].removesuffix(")").split(", "))
    return found


def rows_of(storage: HubStorage) -> dict[str, list[str]]:
    """The rows of each table, without ids that are numbered in the order of insertion."""
    columns = {name: "*" for name, found in tables_of(storage).items() if isinstance(found[0], list)}
    del columns["sqlite_sequence"]
    columns |= WITHOUT_NUMBERS
    return {name: sorted(map(str, read(storage, f"SELECT {one} FROM {name}"))) for name, one in columns.items()}


def new_storage(folder: Path) -> HubStorage:
    storage = embedded_storage(folder)
    storage.folder.mkdir(mode=0o700)
    manage(storage.env, "shell", "--no-imports", "-c", BRING_UP_TO_DATE)
    return storage


def test_they_are_those_that_the_migrations_make_and_are_then_left_alone(
    embedded_storages: EmbeddedStorages, tmp_path: Path
) -> None:
    migrated, new = embedded_storages.new(tmp_path / "migrated"), new_storage(tmp_path / "new")
    assert tables_of(new) == tables_of(migrated)
    assert rows_of(new) == rows_of(migrated)
    assert "No migrations to apply" in manage(new.env, "migrate")
    program = f"{BRING_UP_TO_DATE}; {SHOW_MIGRATIONS}"
    assert manage(new.env, "shell", "--no-imports", "-c", program).strip() == "[]"


def test_a_database_that_lacks_a_migration_is_migrated(tmp_path: Path) -> None:
    storage = new_storage(tmp_path / "old")
    before = tables_of(storage)
    read(storage, "DROP TABLE hub_jobrun")
    read(storage, "DELETE FROM django_migrations WHERE app = 'hub'")
    manage(storage.env, "shell", "--no-imports", "-c", BRING_UP_TO_DATE)
    assert tables_of(storage) == before
