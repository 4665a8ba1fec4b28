"""One thread writes to SQLite first: transactions of other threads begin after it, or after a short wait."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from kit.concurrency import FIRST_WRITER_S, FirstWriter, first_writer


@contextmanager
def wanting(writer: FirstWriter) -> Iterator[None]:
    writer.wants_lock = True
    try:
        yield
    finally:
        writer.wants_lock = False


def test_others_wait_for_the_first_writer_but_not_for_long() -> None:
    writer, began = FirstWriter(), time.monotonic()
    writer.let_write()
    assert time.monotonic() - began < FIRST_WRITER_S
    with wanting(writer):
        writer.let_write()
    assert time.monotonic() - began >= FIRST_WRITER_S


@pytest.mark.django_db(transaction=True)
def test_a_transaction_begins_when_the_first_writer_has_ended() -> None:
    if connection.vendor != "sqlite":
        pytest.fail("PostgreSQL has many writers: deselect the module there")
    order: list[str] = []

    def write() -> None:
        with transaction.atomic():
            order.append("other")
        connection.close()

    with wanting(first_writer):
        other = threading.Thread(target=write)
        other.start()
        time.sleep(FIRST_WRITER_S / 4)
        order.append("first")
    other.join()
    assert order == ["first", "other"]
