"""Tasks in this process: the default of a hub that is one process."""

import itertools
from collections import OrderedDict
from collections.abc import Callable

from a2a_bridge.tasks.record import OPEN_TTL_S, TASK_TTL_S, Task

MAX_BYTES = 256 * 1024 * 1024
MAX_BYTES_A_CALLER = 16 * 1024 * 1024


class _Shelf:
    """One caller's tasks, oldest first, each with the moment it expires."""

    __slots__ = ("size_bytes", "tasks")

    def __init__(self) -> None:
        self.tasks: OrderedDict[str, tuple[Task, float]] = OrderedDict()
        self.size_bytes = 0

    def put(self, task: Task, expires: float) -> int:
        """Keep a task; by how many bytes the shelf grew."""
        grown = task.size_bytes - self.drop(task.id)
        self.tasks[task.id] = (task, expires)
        self.size_bytes += task.size_bytes
        return grown

    def drop(self, task_id: str) -> int:
        """Forget a task; how many bytes that freed."""
        old = self.tasks.pop(task_id, None)
        freed = old[0].size_bytes if old else 0
        self.size_bytes -= freed
        return freed

    def oldest_finished(self) -> str | None:
        """The task to give up first."""
        return next((task_id for task_id, (task, _) in self.tasks.items() if task.is_terminal), None)

    def expired(self, now: float) -> list[str]:
        """The tasks whose time is over, looked for from the oldest."""
        return list(itertools.takewhile(lambda task_id: self.tasks[task_id][1] <= now, self.tasks))


class MemoryTaskStore:
    """See `TaskStore`. Expired tasks go when their shelf is touched, and all shelves are swept in turn."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        max_bytes: int = MAX_BYTES,
        max_bytes_a_caller: int = MAX_BYTES_A_CALLER,
    ) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_bytes_a_caller = max_bytes_a_caller
        self._shelves: OrderedDict[int, _Shelf] = OrderedDict()
        self._size_bytes = 0

    async def put(self, task: Task) -> None:
        """See `TaskStore`."""
        shelf = self._shelves.setdefault(task.caller_id, _Shelf())
        self._shelves.move_to_end(task.caller_id)
        ttl_s = TASK_TTL_S if task.is_terminal else OPEN_TTL_S
        self._size_bytes += shelf.put(task, self._clock() + ttl_s)
        while shelf.size_bytes > self._max_bytes_a_caller and (victim := shelf.oldest_finished()):
            self._size_bytes -= shelf.drop(victim)
        self._sweep(next(iter(self._shelves)))
        self._shrink()

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """See `TaskStore`."""
        self._sweep(caller_id)
        shelf = self._shelves.get(caller_id)
        task, expires = shelf.tasks.get(task_id, (None, 0.0)) if shelf else (None, 0.0)
        return task if expires > self._clock() else None

    async def drop(self, task: Task) -> None:
        """See `TaskStore`."""
        if shelf := self._shelves.get(task.caller_id):
            self._size_bytes -= shelf.drop(task.id)

    async def close(self) -> None:
        """See `TaskStore`."""
        self._shelves.clear()

    def _sweep(self, caller_id: int) -> None:
        """Drop a caller's expired tasks."""
        shelf = self._shelves.get(caller_id)
        if shelf is None:
            return
        for victim in shelf.expired(self._clock()):
            self._size_bytes -= shelf.drop(victim)
        if not shelf.tasks:
            del self._shelves[caller_id]

    def _shrink(self) -> None:
        """Give up finished tasks of those who asked least recently until all fits."""
        for caller_id in list(self._shelves) if self._size_bytes > self._max_bytes else ():
            shelf = self._shelves[caller_id]
            while self._size_bytes > self._max_bytes and (victim := shelf.oldest_finished()):
                self._size_bytes -= shelf.drop(victim)
            if self._size_bytes <= self._max_bytes:
                return
