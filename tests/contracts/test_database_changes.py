"""An embedded hub notices each commit of any connection, and nothing else."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from hub.polling import Changes, SqliteChanges, WaitingRows
from kit.async_db import DbThread
from kit.sql import AnyRow
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
    assert Changes().version() is None


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


@pytest.mark.parametrize("is_known", [True, False], ids=["version known", "unknown"])
async def test_work_for_waiting_rows_is_done_while_any_waits(tmp_path: Path, is_known: bool) -> None:
    path = tmp_path / "one.sqlite3"
    path.touch()
    changes = SqliteChanges(path) if is_known else Changes()
    thread, done, asked = DbThread("rows"), [], []

    def are_any() -> bool:
        asked.append(1)
        with closing(sqlite3.connect(path)) as reader:
            return bool(reader.execute("SELECT EXISTS (SELECT 1 FROM t)").fetchone()[0])

    async def work() -> None:
        done.append(1)

    waiting = WaitingRows(changes, thread.call, are_any, work)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE t (n)")
        for _ in range(3):
            await waiting.look()
        assert (len(asked), done) == (1 if is_known else 3, [])
        writer.execute("INSERT INTO t VALUES (1)")
        for _ in range(2):  # what waits may become due without a commit
            await waiting.look()
        assert len(done) == 2
        writer.execute("DELETE FROM t")
        await waiting.look()
        assert len(done) == 2
    changes.close()
    await thread.close()


@pytest.mark.django_db
def test_whether_any_row_is_there_is_one_query_of_one_row() -> None:
    are_there = AnyRow(User.objects.filter(login__in=["ann", "100%"]).order_by("login"))
    assert not are_there()
    User.objects.create(login="bob")
    assert not are_there()
    User.objects.create(login="100%")
    with CaptureQueriesContext(connection) as asked:
        assert are_there()
    assert [query["sql"].count("LIMIT 1") for query in asked] == [1]
    User.objects.filter(login="100%").delete()
    assert not are_there()
