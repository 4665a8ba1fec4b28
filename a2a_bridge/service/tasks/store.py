"""The stores of tasks: one contract, one store for each kind of deployment (docs/adr/0045), and their choice.

The id of a task names the store that its agent chose (docs/adr/0072).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from a2a_bridge.wire.task import OPEN, TERMINAL, State, Task, TaskEvent, TaskPage
from agents.core.types import AskTarget
from kit import sql
from kit.ids import unguessable

ENDED_TTL_S = 30 * 60
ASKING_TTL_S = 24 * 60 * 60
OPEN_TTL_S = 75 * 60  # an agent may take an hour
MAY_RUN = timedelta(seconds=OPEN_TTL_S)
PREFIX = "task-"


def ttl_s(task: Task) -> int:
    """The seconds for which a store keeps a task that does not change."""
    if task.state in OPEN:
        return OPEN_TTL_S
    return ENDED_TTL_S if task.state in TERMINAL else ASKING_TTL_S


def may_run(state: str, updated_at: datetime, now: datetime) -> bool:
    """True if the state allows that an agent works on the task: a task that asks may wait for an approval."""
    return state in OPEN or (state == State.INPUT_REQUIRED and updated_at > now - MAY_RUN)


class Listed(Protocol):
    """The fields by which a query chooses: of a task, or of a store's note of one."""

    @property
    def id(self) -> str: ...
    @property
    def handle(self) -> str: ...
    @property
    def context_id(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def updated_at(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQuery:
    """A selection of a caller's tasks with one agent, the task whose state was set last first.

    `since`: a timestamp, inclusive. `before`: the (updated_at, id) of the last task of the page before.
    `prefixes`: the tasks' ids begin with one of these, where any is given; `other_prefixes`: with none of these.
    """

    caller_id: int
    handle: str
    context_id: str = ""
    state: State | None = None
    since: str = ""
    before: tuple[str, str] | None = None
    limit: int = 50
    prefixes: tuple[str, ...] = ()
    other_prefixes: tuple[str, ...] = ()

    def takes(self, task: Listed) -> bool:
        """True if the query selects this task of the caller, on any page."""
        return (
            task.handle == self.handle
            and self.context_id in ("", task.context_id)
            and self.state in (None, task.state)
            and task.updated_at >= self.since
            and (not self.prefixes or task.id.startswith(self.prefixes))
            and not task.id.startswith(self.other_prefixes)
        )


class TaskStore(Protocol):
    """Keeps tasks, each with the events that made it what it is, for the caller that made them alone.

    A task is its latest snapshot and the events after it; `seq` counts them without a gap. Bounded for each caller
    and in all: the oldest finished tasks go first. Writing what is there already changes nothing, and a task that
    has ended stays as it ended.
    """

    def put_now(self, task: Task) -> bool:
        """Do what `put` does if the store need not wait; False: nothing was done, and `put` has to be used."""

    async def put(self, task: Task) -> None:
        """Keep a new task, or one that was not followed before its end. The task may be lost with the store.

        Raises:
            Unavailable: an ended one is not kept; try again. Not every store says so.
        """

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        """Keep what happened to a task that is kept; `task` is what it became.

        Raises:
            Unavailable: it may not be kept; try again with these and later ones.
        """

    def append_now(self, task: Task, events: Sequence[TaskEvent]) -> bool:
        """Do what `append` does if the store need not wait; False: nothing was done, `append` has to be used."""

    async def replace(self, task: Task, events: Sequence[TaskEvent], *, expected_seq: int) -> bool:
        """Like `append`, if its last event is still that one; of several at once only one gets True.

        The store also keeps all else of `task`, such as a new message in its history.

        Raises:
            Unavailable: it is unknown whether it was kept.
        """

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """The task; None when it is absent, expired, or another caller's.

        Raises:
            Unavailable: the store is out of reach.
        """

    async def events_after(self, task: Task, seq: int) -> Sequence[TaskEvent] | None:
        """The events of a found task since then, in order and without a gap; None when these are no longer known.

        Raises:
            Unavailable: the store is out of reach.
        """

    async def page(self, query: TaskQuery) -> TaskPage:
        """A page of a caller's tasks.

        Raises:
            Unavailable: the store is out of reach.
        """

    async def drop(self, task: Task) -> None:
        """Delete a task that was never shown to its caller."""

    def writes(self, task: Task, events: Sequence[TaskEvent], *, is_message: bool = False) -> Sequence[sql.Query]:
        """The same as `append`, or `put`, as SQL for the transaction that settles the turn.

        Nothing when the store is not in the database: then `append` is called after the commit. `is_message`: the
        caller gets the answer as a message. Only threads show the task: `find` and `page` do not.
        """

    async def close(self) -> None:
        """Let go of what the store holds open."""


def new_task_id(agent: AskTarget) -> str:
    """`task-` and 32 hex digits; between them the kind of store, where the agent chose one."""
    return unguessable(f"{PREFIX}{agent.task_store}-" if agent.task_store else PREFIX)


class StoresById:
    """The stores of a hub. `kinds`: the stores that agents may choose, by `Agent.TaskStore`; `own`: the hub's.

    Agents that change their choice keep the tasks they have: a list of tasks is one of all stores.
    """

    def __init__(self, own: TaskStore, kinds: Mapping[str, TaskStore]) -> None:
        self._own = own
        self._by_prefix = {f"{PREFIX}{kind}-": store for kind, store in kinds.items()}
        self._all = list(dict.fromkeys([own, *kinds.values()]))

    def of(self, task_id: str) -> TaskStore:
        """The store of a task; ids of other forms are the hub's own."""
        return self._by_prefix.get(task_id[: task_id.rfind("-") + 1], self._own)

    async def page(self, query: TaskQuery) -> TaskPage:
        """A page of a caller's tasks: the newest of a whole page of what `find` finds in each store."""
        pages = [await store.page(self._meant_of(store, query)) for store in self._all]
        found = [task for page in pages for task in page.tasks]
        newest = sorted(found, key=lambda task: (task.updated_at, task.id), reverse=True)
        is_last = all(page.is_last for page in pages) and len(newest) <= query.limit
        return TaskPage(newest[: query.limit], sum(page.total for page in pages), is_last)

    async def close(self) -> None:
        """Close each store."""
        for store in self._all:
            await store.close()

    def _meant_of(self, store: TaskStore, query: TaskQuery) -> TaskQuery:
        """A store that was the hub's own may have tasks whose ids name no store: those are not found any more."""
        of_others = tuple(prefix for prefix, one in self._by_prefix.items() if one is not store)
        if store is self._own:
            return replace(query, other_prefixes=of_others)
        own = tuple(prefix for prefix, one in self._by_prefix.items() if one is store)
        return replace(query, prefixes=own)
