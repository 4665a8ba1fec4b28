"""SQLite's write lock, as the threads of one process wait for it: the ledger waits for one of the others at most.

SQLite has one writer at a time. A connection that finds the lock taken looks again after pauses, which grow to a
tenth of a second, so it waits for longer than the lock is taken, and others that follow each other pass it.
Threads that wait for each other here go on as soon as the lock is free. SQLite still decides: a thread that waited
for `MOST_WAIT_S` goes on without its turn, and waits for SQLite's lock as for another process.
"""

import threading
import time

MOST_WAIT_S = 0.1


class WriteLock:
    """Lets the ledger and one other thread write in turn. A thread that has its turn waits for no further one.

    As a context manager it is the ledger's turn, for which few functions are called.
    """

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._others = threading.Lock()  # so that one of them at most waits beside the ledger
        self._writer = 0  # the thread that has its turn
        self._nested = 0  # turns of the ledger within a turn of its thread

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._writer == me:
            self._nested += 1
        elif self._writing.acquire(timeout=MOST_WAIT_S):
            self._writer = me

    def __exit__(self, *failure: object) -> None:
        if self._writer != threading.get_ident():
            return
        if self._nested:
            self._nested -= 1
        else:
            self._writer = 0
            self._writing.release()

    def enter(self) -> bool:
        """Wait for the turn of another thread than the ledger's; True: the thread has to call `leave`."""
        if self._writer == threading.get_ident():
            return False
        until = time.monotonic() + MOST_WAIT_S
        if not self._others.acquire(timeout=MOST_WAIT_S):
            return False
        if not self._writing.acquire(timeout=max(0.0, until - time.monotonic())):
            self._others.release()
            return False
        self._writer = threading.get_ident()
        return True

    def leave(self) -> None:
        """Let the next thread write."""
        self._writer = 0
        self._writing.release()
        self._others.release()


write_lock = WriteLock()
