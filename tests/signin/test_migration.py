"""The release before runs on the new schema, and the migration goes both ways."""

import sqlite3
from contextlib import closing
from pathlib import Path

from lab.hub_storage import manage

OLD_INSERT = """
INSERT INTO accounts_credential (user_id, kind, name, prefix, digest, user_agent, created_at)
VALUES (1, 'session', 'old release', 'cw_sess_abcdef', ?, '', '2026-01-01 00:00:00')
"""


def run(folder: Path, statement: str, *values: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "hub.sqlite3")) as connection:
        found = connection.execute(statement, values).fetchall()
        connection.commit()
        return found


def test_the_release_before_writes_on_the_new_schema_and_back_loses_no_credential(tmp_path: Path) -> None:
    """The tables of `accounts` alone: no migration of another app changes them."""
    env = {"DATA_DIR": str(tmp_path)}
    manage(env, "migrate", "accounts", "0001", "--verbosity", "0")
    run(tmp_path, "INSERT INTO accounts_user (id, password, is_superuser, login, avatar_url, is_active, is_staff,"
        " created_at) VALUES (1, '', 0, 'old', '', 1, 0, '2026-01-01 00:00:00')")  # fmt: skip
    run(tmp_path, OLD_INSERT, "a" * 64)
    manage(env, "migrate", "accounts", "--verbosity", "0")
    run(tmp_path, OLD_INSERT, "b" * 64)
    rows = run(tmp_path, "SELECT machine_id, app_name, source FROM accounts_credential")
    assert rows == [("", "", "")] * 2
    manage(env, "migrate", "accounts", "0001", "--verbosity", "0")
    assert len(run(tmp_path, "SELECT digest FROM accounts_credential")) == 2
