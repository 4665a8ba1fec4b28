"""Tasks in this process: the default of a hub that is one process."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from msgspec import Struct

from a2a_bridge.service.tasks.store import TaskQuery, ttl_s
from a2a_bridge.wire.task import ArtifactEvent, Role, Task, TaskEvent, TaskPage, size_of
from kit import sql

MAX_BYTES = 64 * 1024 * 1024
MAX_BYTES_A_CALLER = 16 * 1024 * 1024
EVENT_BYTES = 300


class _KeptTask(Struct, gc=False):
    """A task, its events since it was first kept, and when it expires."""

    task: Task
    expires: float
    size_bytes: int
    events: tuple[TaskEvent, ...] = ()


class _CallerTasks:
    """One caller's tasks, oldest first."""

    __slots__ = ("size_bytes", "tasks")

    def __init__(self) -> None:
        self.tasks: OrderedDict[str, _KeptTask] = OrderedDict()
        self.size_bytes = 0

    def put(self, task: Task, expires: float) -> int:
        """Keep a task; returns the bytes by which the caller's tasks grew."""
        size = task.size_bytes
        freed = self.drop(task.id) if task.id in self.tasks else 0
        self.tasks[task.id] = _KeptTask(task, expires, size)
        self.size_bytes += size
        return size - freed

    def add(self, kept: _KeptTask, task: Task, events: Sequence[TaskEvent], expires: float) -> int:
        """Keep new events and caller messages of a task; returns the bytes by which the caller's tasks grew."""
        old, grown = kept.task, 0
        kept.task, kept.expires = task, expires
        self.tasks.move_to_end(task.id)
        new = tuple(event for event in events if event.seq > old.seq)
        kept.events += new
        grown += sum(map(_weight, new))
        for said in task.history[len(old.history) :]:
            if said.role is Role.USER:
                grown += size_of(said)
        kept.size_bytes += grown
        self.size_bytes += grown
        return grown

    def drop(self, task_id: str) -> int:
        """Delete a task; returns the number of freed bytes."""
        old = self.tasks.pop(task_id, None)
        freed = old.size_bytes if old else 0
        self.size_bytes -= freed
        return freed

    def oldest_finished(self) -> str | None:
        """The id of the oldest task that no agent works on; None if there is none."""
        return next((task_id for task_id, kept in self.tasks.items() if not kept.task.is_running), None)

    def sweep(self, now: float) -> int:
        """Delete expired tasks, from the oldest to the first that has not expired; returns the freed bytes."""
        expired = []
        for kept in self.tasks.values():
            if kept.expires > now:
                break
            expired.append(kept.task.id)
        return sum(map(self.drop, expired)) if expired else 0


class MemoryTaskStore:
    """See `TaskStore`. Expired tasks are not found; they are deleted as new ones arrive, caller by caller."""

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
        self._shelves: OrderedDict[int, _CallerTasks] = OrderedDict()
        self._size_bytes = 0

    async def put(self, task: Task) -> None:
        """See `TaskStore`."""
        self.put_now(task)

    def put_now(self, task: Task) -> bool:
        """See `TaskStore`. A store in memory never waits."""
        shelf = self._shelves.get(task.caller_id)
        if shelf is None:
            shelf = self._shelves[task.caller_id] = _CallerTasks()
        now = self._clock()
        kept = shelf.tasks.get(task.id)
        if kept and kept.expires > now and (kept.task.is_terminal or task.seq <= kept.task.seq):
            return True
        self._grow(task, shelf, shelf.put(task, now + ttl_s(task)))
        self._sweep(task, shelf, now)
        return True

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        """See `TaskStore`."""
        self._add(task, events)

    def append_now(self, task: Task, events: Sequence[TaskEvent]) -> bool:
        """See `TaskStore`. A store in memory never waits."""
        self._add(task, events)
        return True

    async def replace(self, task: Task, events: Sequence[TaskEvent], *, expected_seq: int) -> bool:
        """See `TaskStore`."""
        kept = self._kept(task.id, task.caller_id)
        if kept is None or kept.task.is_terminal or kept.task.seq != expected_seq:
            return False
        await self.append(task, events)
        return True

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """See `TaskStore`."""
        kept = self._kept(task_id, caller_id)
        return kept.task if kept else None

    async def events_after(self, task: Task, seq: int) -> Sequence[TaskEvent] | None:
        """See `TaskStore`."""
        kept = self._kept(task.id, task.caller_id)
        if kept is None:
            return None
        first = kept.task.seq - len(kept.events)
        return list(kept.events[seq - first :]) if first <= seq <= kept.task.seq else None

    async def page(self, query: TaskQuery) -> TaskPage:
        """See `TaskStore`."""
        shelf = self._shelves.get(query.caller_id)
        now = self._clock()
        kept = [one.task for one in shelf.tasks.values() if one.expires > now] if shelf else []
        found = sorted((one for one in kept if query.takes(one)), key=_position, reverse=True)
        rest = [one for one in found if query.before is None or _position(one) < query.before]
        return TaskPage(rest[: query.limit], len(found), len(rest) <= query.limit)

    async def drop(self, task: Task) -> None:
        """See `TaskStore`."""
        if shelf := self._shelves.get(task.caller_id):
            self._size_bytes -= shelf.drop(task.id)

    def writes(self, task: Task, events: Sequence[TaskEvent], *, is_message: bool = False) -> Sequence[sql.Query]:
        """See `TaskStore`."""
        return ()

    async def close(self) -> None:
        """See `TaskStore`."""
        self._shelves.clear()

    def _kept(self, task_id: str, caller_id: int) -> _KeptTask | None:
        shelf = self._shelves.get(caller_id)
        kept = shelf.tasks.get(task_id) if shelf else None
        return kept if kept and kept.expires > self._clock() else None

    def _add(self, task: Task, events: Sequence[TaskEvent]) -> None:
        now = self._clock()
        shelf = self._shelves.get(task.caller_id)
        kept = shelf.tasks.get(task.id) if shelf else None
        if shelf and kept and kept.expires > now and task.seq > kept.task.seq and not kept.task.is_terminal:
            self._grow(task, shelf, shelf.add(kept, task, events, now + ttl_s(task)))

    def _grow(self, task: Task, shelf: _CallerTasks, by_bytes: int) -> None:
        """Count the added bytes, then delete the oldest finished tasks above the limits."""
        self._size_bytes += by_bytes
        self._shelves.move_to_end(task.caller_id)
        while shelf.size_bytes > self._max_bytes_a_caller and (victim := shelf.oldest_finished()):
            self._size_bytes -= shelf.drop(victim)
        if self._size_bytes > self._max_bytes:
            self._shrink()

    def _sweep(self, task: Task, shelf: _CallerTasks, now: float) -> None:
        """Delete the expired tasks of the caller, and of the caller who asked least recently."""
        self._size_bytes -= shelf.sweep(now)
        for oldest in self._shelves:
            if oldest != task.caller_id:
                self._size_bytes -= self._shelves[oldest].sweep(now)
                if not self._shelves[oldest].tasks:
                    del self._shelves[oldest]
            break

    def _shrink(self) -> None:
        """Delete finished tasks of the callers who asked least recently, until the total is within its limit."""
        for shelf in self._shelves.values():
            while self._size_bytes > self._max_bytes and (victim := shelf.oldest_finished()):
                self._size_bytes -= shelf.drop(victim)
            if self._size_bytes <= self._max_bytes:
                return


def _position(task: Task) -> tuple[str, str]:
    return task.updated_at, task.id


def _weight(event: TaskEvent) -> int:
    held = (event.again or event.artifact) if isinstance(event, ArtifactEvent) else event.message
    return EVENT_BYTES + (size_of(held) if held else 0)
