"""The store of tasks, chosen for each agent: tasks are found again after a later choice, too."""

import msgspec
import pytest

from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.store import StoresById, TaskQuery, TaskStore, new_task_id
from agents.core.types import AskTarget
from tests.contracts.stored_tasks import HANDLE, Clock, at, ended, keep, story, task


@pytest.fixture
def memory() -> TaskStore:
    return MemoryTaskStore(Clock())


@pytest.fixture
def other() -> TaskStore:
    return MemoryTaskStore(Clock())


@pytest.fixture
def chosen(memory: TaskStore, other: TaskStore) -> StoresById:
    return StoresById(memory, {"memory": memory, "journal": other})


def new_id(kind: str = "") -> str:
    return new_task_id(AskTarget(1, 1, HANDLE, task_store=kind))


async def test_an_id_says_where_its_task_is(chosen: StoresById, memory: TaskStore, other: TaskStore) -> None:
    for kind, store, without in (("", memory, other), ("memory", memory, other), ("journal", other, memory)):
        made = task(new_id(kind))
        assert len(made.id) <= 64
        kept = await keep(chosen.of(made.id), made, story())
        assert (
            await store.find(made.id, caller_id=1) == await chosen.of(made.id).find(made.id, caller_id=1) == kept
        )
        assert await without.find(made.id, caller_id=1) is None
        assert await chosen.of(kept.id).events_after(kept, 0) == story()
        assert await chosen.of(made.id).find(made.id, caller_id=2) is None
        await chosen.of(kept.id).drop(kept)
        assert await chosen.of(made.id).find(made.id, caller_id=1) is None


async def test_an_id_of_no_kind_is_looked_for_in_the_hubs_own(chosen: StoresById) -> None:
    for task_id in ("", "task-", "task-redis-x", "other"):
        assert await chosen.of(task_id).find(task_id, caller_id=1) is None


async def test_a_list_is_one_of_all_stores_the_newest_first(chosen: StoresById) -> None:
    for number in range(10):
        made = msgspec.structs.replace(ended(), id=new_id("journal" if number % 3 else ""), updated_at=at(number))
        await chosen.of(made.id).put(made)
    seen: list[str] = []
    before = None
    while True:
        page = await chosen.page(_after(before))
        assert page.total == 10
        seen += [one.updated_at for one in page.tasks]
        if page.is_last:
            break
        before = page.tasks[-1].updated_at, page.tasks[-1].id
    assert seen == [at(number) for number in reversed(range(10))]


async def test_a_list_shows_what_is_found_alone(memory: TaskStore, other: TaskStore) -> None:
    """After the hub's own store was changed, tasks of the former one are not found, and not listed or counted."""
    before = StoresById(other, {"memory": memory, "journal": other})
    ids = [new_id(kind) for kind in ("", "memory", "journal")]
    for number, task_id in enumerate(ids):
        await before.of(task_id).put(msgspec.structs.replace(ended(), id=task_id, updated_at=at(number)))
    now = StoresById(memory, {"memory": memory, "journal": other})
    for stores, shown in ((before, ids[::-1]), (now, ids[:0:-1])):
        page = await stores.page(_after(None))
        assert [one.id for one in page.tasks] == shown
        assert page.total == len(shown)
        assert [one for one in ids[::-1] if await stores.of(one).find(one, caller_id=1)] == shown


def _after(before: tuple[str, str] | None) -> TaskQuery:
    return TaskQuery(caller_id=1, handle=HANDLE, limit=4, before=before)
