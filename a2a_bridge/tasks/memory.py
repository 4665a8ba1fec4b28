"""Tasks in this process: the default of a hub that is one process."""

from collections import OrderedDict
from collections.abc import Callable

from a2a_bridge.tasks.record import TASK_TTL_S, Task

MAX_BYTES = 256 * 1024 * 1024
MAX_BYTES_A_CALLER = 16 * 1024 * 1024


class _Shelf:
    """One caller's tasks, oldest first, each with the moment it expires (None while it is open)."""

    __slots__ = ("size_bytes", "tasks")

    def __init__(self) -> None:
        self.tasks: OrderedDict[str, tuple[Task, float | None]] = OrderedDict()
        self.size_bytes = 0

    def put(self, task: Task, expires: float | None) -> int:
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
        return next((task_id for task_id, (_, expires) in self.tasks.items() if expires is not None), None)


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
        expires = self._clock() + TASK_TTL_S if task.is_terminal else None
        self._size_bytes += shelf.put(task, expires)
        while shelf.size_bytes > self._max_bytes_a_caller and (victim := shelf.oldest_finished()):
            self._size_bytes -= shelf.drop(victim)
        self._sweep(next(iter(self._shelves)))
        self._shrink()

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """See `TaskStore`."""
        self._sweep(caller_id)
        shelf = self._shelves.get(caller_id)
        kept = shelf.tasks.get(task_id) if shelf else None
        return kept[0] if kept else None

    async def close(self) -> None:
        """See `TaskStore`."""
        self._shelves.clear()

    def _sweep(self, caller_id: int) -> None:
        """Drop a caller's expired tasks: they stand first, in the order they ended."""
        shelf = self._shelves.get(caller_id)
        now = self._clock()
        while shelf and (victim := shelf.oldest_finished()):
            expires = shelf.tasks[victim][1]
            if expires is None or expires > now:
                break
            self._size_bytes -= shelf.drop(victim)
        if shelf is not None and not shelf.tasks:
            del self._shelves[caller_id]

    def _shrink(self) -> None:
        """Give up finished tasks of those who asked least recently until all fits."""
        for caller_id in list(self._shelves) if self._size_bytes > self._max_bytes else ():
            shelf = self._shelves[caller_id]
            while self._size_bytes > self._max_bytes and (victim := shelf.oldest_finished()):
                self._size_bytes -= shelf.drop(victim)
            if self._size_bytes <= self._max_bytes:
                return
