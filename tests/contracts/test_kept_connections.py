"""A serving process keeps closed connections to SQLite, but none that may be broken."""

from collections.abc import Iterator

import pytest
from django.db import connection

from accounts.models import User
from hub.sqlite.base import MAX_KEPT, DatabaseWrapper, kept

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="psycopg's pool keeps those to PostgreSQL"),
]
Wrappers = list[DatabaseWrapper]


@pytest.fixture
def threads() -> Iterator[Wrappers]:
    """The connections of further threads of a serving process."""
    made = [DatabaseWrapper(connection.settings_dict) for _ in range(MAX_KEPT + 1)]
    with kept.keeping():
        yield made
        for one in made:
            one.close()


def reopened(first: DatabaseWrapper, second: DatabaseWrapper) -> bool:
    """True if the second thread gets the connection of the first when the first request is over."""
    opened = first.connection
    first.close_if_unusable_or_obsolete()
    second.ensure_connection()
    return second.connection is opened


def test_a_closed_connection_is_the_next_one(threads: Wrappers) -> None:
    first, second, *_ = threads
    first.ensure_connection()
    assert reopened(first, second)
    User.objects.create(login="olga")
    with second.cursor() as cursor:
        cursor.execute("SELECT login FROM accounts_user")
        assert cursor.fetchall() == [("olga",)], "it reads what was committed meanwhile"
    first.ensure_connection()
    assert first.connection is not second.connection


def test_a_connection_in_a_transaction_is_not_kept(threads: Wrappers) -> None:
    first, second, *_ = threads
    with first.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        cursor.execute("DELETE FROM accounts_user")
    assert not reopened(first, second)
    User.objects.create(login="olga")  # nothing holds the lock


def test_a_connection_that_its_thread_closes_is_not_kept(threads: Wrappers) -> None:
    """The ledger and the jobs close theirs after a failure, to get a new one."""
    first, second, *_ = threads
    first.ensure_connection()
    opened = first.connection
    first.close()
    second.ensure_connection()
    assert second.connection is not opened


def test_a_few_are_kept(threads: Wrappers) -> None:
    for one in threads:
        one.ensure_connection()
    opened = [one.connection for one in threads]
    for one in threads:
        one.close_if_unusable_or_obsolete()
    for one in threads:
        one.ensure_connection()
    assert sum(one.connection in opened for one in threads) == MAX_KEPT


def test_a_program_that_does_not_serve_keeps_none() -> None:
    first, second = (DatabaseWrapper(connection.settings_dict) for _ in range(2))
    first.ensure_connection()
    assert not reopened(first, second)
    second.close()


def test_all_are_closed_when_the_process_stops_serving(threads: Wrappers) -> None:
    first, second, *_ = threads
    with kept.keeping():
        first.ensure_connection()
        first.close_if_unusable_or_obsolete()
    assert kept.take() is None
    second.ensure_connection()
    second.close_if_unusable_or_obsolete()
    assert kept.take() is None
