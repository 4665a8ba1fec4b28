"""Threads of requests: how many there are, and that one which computes long goes behind the others."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator

import pytest

from hub.request_turns import BUSY_S, RequestTurns
from kit.async_db import request_call
from kit.request_threads import HAS_NICE_THREADS, LONG_NICENESS, LONG_S, NICENESS, RequestThreads
from lab.waiting import until
from tests.contracts.test_request_turns import scope_of, stay

ALICE = 1
WITHIN_S = 10.0
ORDINARY = max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))  # the tests may be nice themselves
ON_LINUX = pytest.mark.skipif(
    not HAS_NICE_THREADS or ORDINARY >= LONG_NICENESS, reason="these threads cannot become nicer"
)


def niceness() -> int:
    """Of this thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def become_nicer() -> int:
    """Become nicer, as by the event loop; the thread."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LONG_NICENESS)
    return threading.get_native_id()


@pytest.fixture
def one() -> Iterator[RequestThreads]:
    """A single thread."""
    threads = RequestThreads(1, "test")
    yield threads
    threads.shutdown()


def compute(seconds: float) -> tuple[int, int]:
    """Use so much of the processor; the thread and its niceness after that."""
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass
    return threading.get_native_id(), niceness()


def compute_until_nice() -> tuple[int, int]:
    """The thread and its niceness as soon as it is no more the one of before."""
    began, until_s = niceness(), time.monotonic() + WITHIN_S
    while niceness() == began and time.monotonic() < until_s:
        pass
    return threading.get_native_id(), niceness()


@ON_LINUX
async def test_the_thread_of_a_long_call_becomes_nicer_and_serves_no_other_call() -> None:
    call = request_call
    assert (await call(compute)(LONG_S / 10))[1] == ORDINARY
    spoiled, after = await call(compute_until_nice)()
    assert after == LONG_NICENESS
    found = [await call(compute)(0) for _ in range(3)]
    assert {after for _, after in found} == {ORDINARY}
    assert spoiled not in {thread for thread, _ in found}


@ON_LINUX
async def test_waiting_makes_no_thread_nicer() -> None:
    def wait() -> int:
        time.sleep(LONG_S * 4)
        return niceness()

    assert await request_call(wait)() == ORDINARY


@ON_LINUX
async def test_an_account_that_used_much_is_served_behind_the_others() -> None:
    now_s = 0.0
    turns = RequestTurns(clock=lambda: now_s)
    turns.end(await turns.begin(scope_of("a"), stay), 0.0, ALICE)
    assert await turns.call(ALICE, stay, niceness) == ORDINARY
    turn = await turns.begin(scope_of("a"), stay)
    assert not turn.is_busy
    turns.end(turn, 2 * BUSY_S)
    assert await turns.call(ALICE, stay, niceness) == LONG_NICENESS
    now_s = 60.0
    assert await turns.call(ALICE, stay, niceness) == ORDINARY


async def test_a_call_waits_while_all_threads_are_taken() -> None:
    threads, go_on = RequestThreads(2, "test"), threading.Event()
    first = [threads.submit(go_on.wait, WITHIN_S) for _ in range(2)]
    third = threads.submit(threading.get_native_id)
    await asyncio.sleep(0.05)
    assert not third.done()
    go_on.set()
    assert third.result(WITHIN_S)
    assert all(call.result(WITHIN_S) for call in first)
    threads.shutdown()


def until_ordinary() -> None:
    """Wait until the threads that became nicer have ended."""

    def are_ordinary() -> bool:
        found = [thread.native_id for thread in threading.enumerate() if thread.name == "test"]
        try:
            return all(os.getpriority(os.PRIO_PROCESS, one) == ORDINARY for one in found if one)
        except ProcessLookupError:  # it has just ended
            return False

    until(are_ordinary, "the end of the nicer threads", within_s=WITHIN_S)


@ON_LINUX
def test_calls_that_wait_for_a_thread_run_before_it_ends(one: RequestThreads) -> None:
    spoiled = [one.submit(become_nicer) for _ in range(5)]
    assert all(call.result(WITHIN_S) for call in spoiled)
    until_ordinary()
    assert one.submit(niceness).result(WITHIN_S) == ORDINARY


@ON_LINUX
def test_a_new_thread_is_not_as_nice_as_the_one_before() -> None:
    threads = RequestThreads(2, "test")
    for _ in range(50):
        calls = [threads.submit(call) for call in (become_nicer, niceness, become_nicer)]
        assert all(call.result(WITHIN_S) is not None for call in calls)
    until_ordinary()
    assert [threads.submit(niceness).result(WITHIN_S) for _ in range(3)] == [ORDINARY] * 3
    threads.shutdown()


def test_a_thread_that_cannot_start_costs_no_place(one: RequestThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    ran: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            one.submit(ran.append, "refused")
    one.submit(ran.append, "accepted").result(WITHIN_S)
    assert ran == ["accepted"]


def test_an_error_is_the_callers_and_the_thread_goes_on(one: RequestThreads) -> None:
    failed = one.submit(divmod, 1, 0)
    assert one.submit(divmod, 7, 2).result(WITHIN_S) == (3, 1)
    assert isinstance(failed.exception(WITHIN_S), ZeroDivisionError)


def test_after_shutdown_all_calls_have_run_and_no_more_are_taken(one: RequestThreads) -> None:
    calls = [one.submit(time.sleep, 0.02) for _ in range(3)]
    one.shutdown()
    assert all(call.done() and not call.cancelled() for call in calls)
    with pytest.raises(RuntimeError):
        one.submit(divmod, 7, 2)
