"""Threads that write to SQLite take turns, and the ledger waits for one of the others at most."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import DatabaseError, connection, transaction

from kit.write_lock import MOST_WAIT_S, WriteLock, write_lock


def in_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_a_thread_that_waited_long_goes_on_without_its_turn() -> None:
    lock, entered = WriteLock(), list[bool]()
    with lock:
        in_thread(lambda: entered.append(lock.enter())).join()
    assert entered == [False]
    assert lock.enter()
    assert not lock.enter()
    with lock:
        in_thread(lambda: entered.append(lock.enter())).join()
    in_thread(lambda: entered.append(lock.enter())).join()
    lock.leave()
    assert entered == [False, False, False]
    in_thread(lambda: entered.append(lock.enter())).join()
    assert entered[3]


def test_the_first_waits_for_one_other_at_most_and_no_longer_than_that_writes() -> None:
    lock, order, waited = WriteLock(), list[str](), list[float]()

    def write(name: str) -> None:
        assert lock.enter()
        order.append(name)
        time.sleep(MOST_WAIT_S / 10)
        lock.leave()

    def write_first() -> None:
        began = time.monotonic()
        with lock:
            order.append("first")
            waited.append(time.monotonic() - began)

    assert lock.enter()
    others = [in_thread(lambda: write("other")) for _ in range(3)]
    first = in_thread(write_first)
    time.sleep(MOST_WAIT_S / 4)
    lock.leave()
    for thread in (*others, first):
        thread.join()
    assert len(order) == 4
    assert order.index("first") <= 1
    assert waited[0] < MOST_WAIT_S


def test_others_have_their_turn_beside_a_first_that_writes_all_the_time() -> None:
    lock, is_over, entered = WriteLock(), threading.Event(), list[bool]()

    def write_first() -> None:
        while not is_over.is_set():
            with lock:
                time.sleep(MOST_WAIT_S / 20)
            time.sleep(MOST_WAIT_S / 1000)  # until the ledger takes its next batch

    def write() -> None:
        entered.append(lock.enter())
        if entered[-1]:
            lock.leave()

    first = in_thread(write_first)
    for _ in range(5):
        in_thread(write).join()
    is_over.set()
    first.join()
    assert entered == [True] * 5


def fail() -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO no_such_table VALUES (1)")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("end", [lambda: None, fail, connection.close], ids=["commits", "fails", "is closed"])
def test_a_transaction_of_django_has_its_turn_until_it_ends(end: Callable[[], object]) -> None:
    if connection.vendor != "sqlite":
        pytest.fail("PostgreSQL has many writers: deselect the module there")
    order = list[str]()

    def write() -> None:
        with transaction.atomic():
            order.append("other")
        connection.close()

    with suppress(DatabaseError), transaction.atomic():
        other = in_thread(write)
        assert not in_another_thread_enters()
        order.append("one")
        end()
    other.join()
    assert order == ["one", "other"]
    assert in_another_thread_enters()


def in_another_thread_enters() -> bool:
    entered = list[bool]()

    def enter() -> None:
        entered.append(write_lock.enter())
        if entered[0]:
            write_lock.leave()

    in_thread(enter).join()
    return entered[0]
