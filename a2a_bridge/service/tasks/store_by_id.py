"""Routes each task to the store that its agent chose, which the task id names (docs/adr/0072)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from a2a_bridge.service.tasks.store import TaskQuery, TaskStore
from a2a_bridge.wire.task import Task, TaskEvent, TaskPage
from agents.core.types import Target
from kit import sql
from kit.ids import unguessable

PREFIX = "task-"


def new_task_id(agent: Target) -> str:
    """`task-` and 32 hex digits; between them the kind of store, where the agent chose one."""
    return unguessable(f"{PREFIX}{agent.task_store}-" if agent.task_store else PREFIX)


class StoresById:
    """See `TaskStore`. `kinds`: the stores that agents may choose, by `Agent.TaskStore`; `own`: the hub's.

    Agents that change their choice keep the tasks they have: a list of tasks is one of all stores.
    """

    def __init__(self, own: TaskStore, kinds: Mapping[str, TaskStore]) -> None:
        self._own = own
        self._by_prefix = {f"{PREFIX}{kind}-": store for kind, store in kinds.items()}
        self._all = list(dict.fromkeys([own, *kinds.values()]))

    async def put(self, task: Task) -> None:
        """See `TaskStore`."""
        await self._of(task.id).put(task)

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        """See `TaskStore`."""
        await self._of(task.id).append(task, events)

    async def replace(self, task: Task, events: Sequence[TaskEvent], *, expected_seq: int) -> bool:
        """See `TaskStore`."""
        return await self._of(task.id).replace(task, events, expected_seq=expected_seq)

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """See `TaskStore`."""
        return await self._of(task_id).find(task_id, caller_id=caller_id)

    async def events_after(self, task: Task, seq: int) -> Sequence[TaskEvent] | None:
        """See `TaskStore`."""
        return await self._of(task.id).events_after(task, seq)

    async def page(self, query: TaskQuery) -> TaskPage:
        """See `TaskStore`. Each store gives a whole page of what `find` finds there; the newest are taken."""
        pages = [await store.page(self._meant_of(store, query)) for store in self._all]
        found = [task for page in pages for task in page.tasks]
        newest = sorted(found, key=lambda task: (task.updated_at, task.id), reverse=True)
        is_last = all(page.is_last for page in pages) and len(newest) <= query.limit
        return TaskPage(newest[: query.limit], sum(page.total for page in pages), is_last)

    async def drop(self, task: Task) -> None:
        """See `TaskStore`."""
        await self._of(task.id).drop(task)

    def writes(self, task: Task, events: Sequence[TaskEvent]) -> Sequence[sql.Query]:
        """See `TaskStore`."""
        return self._of(task.id).writes(task, events)

    async def close(self) -> None:
        """See `TaskStore`."""
        for store in self._all:
            await store.close()

    def _meant_of(self, store: TaskStore, query: TaskQuery) -> TaskQuery:
        """A store that was the hub's own may have tasks whose ids name no store: those are not found any more."""
        of_others = tuple(prefix for prefix, one in self._by_prefix.items() if one is not store)
        if store is self._own:
            return replace(query, other_prefixes=of_others)
        own = tuple(prefix for prefix, one in self._by_prefix.items() if one is store)
        return replace(query, prefixes=own)

    def _of(self, task_id: str) -> TaskStore:
        """The store of a task; ids of other forms are the hub's own."""
        return self._by_prefix.get(task_id[: task_id.rfind("-") + 1], self._own)
