"""An embedded hub notices each commit of any connection, and nothing else."""

import sqlite3
from contextlib import closing
from pathlib import Path

from kit.sql import SqliteChanges, UnknownChanges
from lab.processes import python, run


def test_each_commit_changes_the_version(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite3"
    path.touch()
    changes = SqliteChanges(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE t (n)")
        seen = [changes.version()]
        assert changes.version() == seen[-1]
        writer.execute("SELECT * FROM t").fetchall()
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO t VALUES (1)")
        assert changes.version() == seen[-1]
        writer.execute("COMMIT")
        seen.append(changes.version())
        statements = "c.execute('INSERT INTO t VALUES (2)'); c.commit()"
        run(python("-c", f"import sqlite3; c = sqlite3.connect({str(path)!r}); {statements}"), {})
        seen.append(changes.version())
    assert None not in seen
    assert len(set(seen)) == 3
    changes.close()
    assert changes.version() is not None
    changes.close()


def test_without_a_database_the_version_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite3"
    assert SqliteChanges(path).version() is None
    assert not path.exists()
    assert UnknownChanges().version() is None


def test_a_look_waits_for_no_lock_and_no_version_comes_again_after_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite3"
    path.touch()
    changes = SqliteChanges(path)
    before = changes.version()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")  # without a WAL: no other connection may read
        assert changes.version() is None
    assert changes.version() not in (None, before)
    changes.close()
