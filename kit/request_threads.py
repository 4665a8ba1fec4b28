"""Threads for requests. One that computes long gets less of the processor than others that want it.

Linux has a niceness for each thread; elsewhere all threads are alike. A thread that was made nicer can only be
made less nice again by a privileged user, so it ends after its call, and the next call may start another one.
"""

import asyncio
import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
R = TypeVar("R")

HAS_NICE_THREADS = sys.platform == "linux"  # elsewhere the whole process would become nice
NICENESS, LONG_NICENESS = 2, 10
LONG_S = 0.02  # processor time after which a call is long
MAX_PAUSE_S = 0.2


def be_nice(niceness: int = LONG_NICENESS) -> None:
    """Let threads that are less nice go before this one, such as those of the event loop and the ledger."""
    if HAS_NICE_THREADS:
        _make_nicer(threading.get_native_id(), niceness)


async def call_nicely(function: Callable[[], R]) -> R:
    """Run a long function in a nice thread of its own, such as an import that one of the first requests needs."""
    thread = ThreadPoolExecutor(1, "once", initializer=be_nice)
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, function)
    finally:
        thread.shutdown(wait=False)


def _make_nicer(thread: int, niceness: int) -> None:
    with suppress(OSError):  # not allowed, or the thread has ended
        if os.getpriority(os.PRIO_PROCESS, thread) < niceness:
            os.setpriority(os.PRIO_PROCESS, thread, niceness)


class RequestThreads(Executor):
    """At most `most` threads of niceness `NICENESS`. One starts when no other is idle.

    A thread that was made nicer ends after its call, or after those that wait while all threads are taken.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._calls = deque[tuple[Future[Any], Callable[[], Any]]]()
        self._changed = threading.Condition()
        self._threads = set[threading.Thread]()
        self._idle = 0  # of the threads, with those that have just started
        self._is_over = False
        atexit.register(self.shutdown)

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run the function in a thread.

        Raises:
            RuntimeError: after `shutdown`, or if the system allows no thread.
        """
        future = Future[R]()
        with self._changed:
            if self._is_over:
                raise RuntimeError("the threads take no more calls")
            self._calls.append((future, partial(fn, *args, **kwargs)))
            if self._idle >= len(self._calls):
                self._changed.notify()
            elif len(self._threads) < self._most:
                self._start_thread()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads after the calls that were submitted; see `Executor.shutdown`."""
        with self._changed:
            self._is_over = True
            if cancel_futures:
                for future, _ in self._calls:
                    future.cancel()
            self._changed.notify_all()
            threads = list(self._threads)
        if wait:
            for thread in threads:
                thread.join()

    def _start_thread(self) -> None:
        """Start a thread. It inherits the niceness of its caller, which is therefore none of the threads."""
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                self._calls.pop()
                raise
        else:  # otherwise one of the other threads runs the call
            self._threads.add(thread)
            self._idle += 1

    def _work(self) -> None:
        be_nice(NICENESS)
        niceness = _own_niceness()
        try:
            while self._run_next() and not self._leave(is_nicer=_own_niceness() != niceness):
                pass
        finally:
            with self._changed:
                self._threads.discard(threading.current_thread())
            connections.close_all()

    def _run_next(self) -> bool:
        """Wait for a call and run it; False if there are no more."""
        with self._changed:
            while not self._calls and not self._is_over:
                self._changed.wait()
            self._idle -= 1
            if not self._calls:
                return False
            future, call = self._calls.popleft()
        if future.set_running_or_notify_cancel():
            try:
                result = call()
            except BaseException as failure:  # noqa: BLE001  as in the executors of the standard library
                future.set_exception(failure)
            else:
                future.set_result(result)
        del future, call  # otherwise an exception is part of a cycle with what it holds
        return True

    def _leave(self, *, is_nicer: bool) -> bool:
        """Leave the threads, unless calls wait for a thread; or become idle."""
        with self._changed:
            if is_nicer and len(self._calls) <= self._idle:
                self._threads.remove(threading.current_thread())
                return True
            self._idle += 1
        return False


def _own_niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) if HAS_NICE_THREADS else 0


class WatchedCall(Generic[P, R]):
    """A call in a thread, which the event loop makes nicer once the call has used the processor for `LONG_S`."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self._thread: int | None = None
        self._is_over = False
        self._clock = 0
        self._long_at_s = 0.0
        self._pause_s = LONG_S
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LONG_S, self._look)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function in this thread."""
        if HAS_NICE_THREADS:  # a clock that the event loop can read, also after the thread has ended
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
            self._long_at_s = time.clock_gettime(self._clock) + LONG_S
            self._thread = threading.get_native_id()
        try:
            return self._function(*args, **kwargs)
        finally:
            self._is_over = True

    def stop(self) -> None:
        """Look at it no more, unless it goes on after its caller has left."""
        if self._is_over or self._thread is None:
            self._timer.cancel()

    def _look(self) -> None:
        """Look at the clock of the thread, ever less often while the call waits.

        The call may end at this moment. Then its thread is nicer without need, and ends.
        """
        left_s = LONG_S
        if (thread := self._thread) is not None:
            with suppress(OSError):  # the thread has ended
                left_s = self._long_at_s - time.clock_gettime(self._clock)
        if self._is_over or not HAS_NICE_THREADS:
            return
        if thread is not None and left_s <= 0:
            _make_nicer(thread, LONG_NICENESS)
            return
        self._timer = self._loop.call_later(max(left_s, self._pause_s), self._look)
        self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)
