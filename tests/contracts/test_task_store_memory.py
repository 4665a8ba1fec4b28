"""Tasks in this process: what expires, and what goes first when there are too many."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.store import ASKING_TTL_S, ENDED_TTL_S, OPEN_TTL_S
from a2a_bridge.wire.task import Artifact, ArtifactEvent, Message, Role, State, Task
from agents.transcript.pieces import Part
from kit.ids import unguessable
from tests.contracts.stored_tasks import Clock, at, ended, keep, state, story, task


@pytest.mark.parametrize(
    ("ttl_s", "made", "events"),
    [
        (30 * 60, ended(), []),
        (ENDED_TTL_S, task(), story()),
        (ASKING_TTL_S, task(), story(end=State.INPUT_REQUIRED)),
        (OPEN_TTL_S, task(), []),
    ],
    ids=["ended at once", "ended", "asks", "open"],
)
async def test_a_task_is_gone_after_the_time_of_its_state(ttl_s: float, made: Task, events: list[Any]) -> None:
    clock = Clock()
    store = MemoryTaskStore(clock)
    await keep(store, made, events)
    clock.now += ttl_s - 1
    assert await store.find("task-1", caller_id=1) is not None
    clock.now += 1
    assert await store.find("task-1", caller_id=1) is None


def test_a_task_weighs_what_its_texts_weigh_in_memory() -> None:
    assert ended(text="x" * 1000 + "\U0001f980").size_bytes > 4_000
    said = msgspec.structs.replace(task().history[0], parts=(Part(text="ab"),) * 64)
    assert task(history=(said,)).size_bytes > 64 * 50


async def test_a_callers_oldest_finished_tasks_go_first_when_they_fill_their_share() -> None:
    store = MemoryTaskStore(Clock(), max_bytes_a_caller=20_000)
    await store.put(task("open"))
    await store.put(ended("other", caller_id=2))
    for number in range(20):
        await store.put(ended(f"task-{number}", text="x" * 900))
    kept = [number for number in range(20) if await store.find(f"task-{number}", caller_id=1)]
    assert kept == list(range(kept[0], 20))
    assert 0 < kept[0] < 19
    assert await store.find("open", caller_id=1) is not None
    assert await store.find("other", caller_id=2) is not None


async def test_an_artifact_that_its_event_holds_once_more_counts() -> None:
    store = MemoryTaskStore(Clock(), max_bytes_a_caller=9_000)
    again = Artifact("a", (Part(text="x" * 5_000),))
    events = [
        state(1, State.WORKING),
        ArtifactEvent(2, at(2), Artifact("a", ()), append=True, last_chunk=True, again=again),
        state(3, State.COMPLETED),
    ]
    for number in range(2):
        await keep(store, task(f"task-{number}"), events)
    assert [await store.find(f"task-{number}", caller_id=1) is not None for number in range(2)] == [False, True]


async def test_all_tasks_together_stay_within_the_memory() -> None:
    store = MemoryTaskStore(Clock(), max_bytes=40_000)
    for caller_id in range(40):
        await store.put(ended(caller_id=caller_id, text="x" * 900))
    kept = [caller_id for caller_id in range(40) if await store.find("task-1", caller_id=caller_id)]
    assert kept == list(range(kept[0], 40))
    assert len(kept) * ended(text="x" * 900).size_bytes <= 40_000


REPLIES: dict[str, tuple[int, Callable[[], Part]]] = {  # and how many of them are over twice the memory
    "short": (2_000, lambda: Part(text=f"yes {unguessable()}")),
    "long": (500, lambda: Part(text=unguessable() * 300)),
    "data": (
        500,
        lambda: Part(data=json.loads(json.dumps({"rows": [{"id": n, "name": str(n)} for n in range(40)]}))),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPLIES)
async def test_tasks_take_no_more_memory_than_they_may(kind: str) -> None:
    store, (count, reply) = MemoryTaskStore(Clock(), max_bytes=2_000_000), REPLIES[kind]
    tracemalloc.start()
    try:
        for number in range(count):
            said = Message(unguessable(), Role.USER, (Part(text=unguessable() * 4),))
            artifact = Artifact("reply-1", (reply(),))
            await store.put(ended(unguessable(), caller_id=number % 20, history=(said,), artifacts=(artifact,)))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 2_400_000
