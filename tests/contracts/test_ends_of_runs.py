"""The end of a turn is stored and sent, whenever it is first asked for."""

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import pytest
from msgspec.structs import replace

from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.repeats import KeyClaim
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.pieces import events_of_plain, plain_end
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.wire.requests import PushTarget, Send
from a2a_bridge.wire.task import ArtifactEvent, Message, Role, State, Task, TaskEvent, after
from agents.core.errors import Offline, Unavailable
from agents.core.post import ExtraPiece, LocalPost, PostedChunk
from agents.core.types import Ask, OpenTurn, SettledTurn
from agents.models.choices import Outcome, TurnFailure
from agents.transcript.pieces import ApprovalAsked, ArtifactPiece, Part
from kit.async_db import db_call
from tests.contracts.rows import ASK, admitted, ask, end, published
from tests.contracts.stored_tasks import Clock, at, task

REPLIED = SettledTurn(Outcome.COMPLETED, "", "hi")


class Waiting(MemoryTaskStore):
    """A store that has to wait for each event."""

    def append_now(self, task: Task, events: Sequence[TaskEvent]) -> bool:
        return False


class Broken(Waiting):
    """A store with a fault of its own."""

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        raise RuntimeError


def run_on(store: MemoryTaskStore, *, keeps_plain: bool = True, claim: KeyClaim | None = None) -> TaskRun:
    """A turn that was just admitted, with its task."""
    feeds = Feeds()
    pushes = Pushes(feeds, TaskReader(StoresById(store, {}), feeds, reply_wait_s=60), LocalPost(), lambda: None)
    send = make_send(takes_direct=not keeps_plain)
    run = TaskRun(ASK, task(), send, store=store, feeds=feeds, pushes=pushes, claim=claim)
    run.admit(OpenTurn(ask=ASK, connection_id=1, link_process="p", text="what?"))
    return run


async def keep_end(run: TaskRun, settled: SettledTurn) -> None:
    """Keep the end, whether or not the store has to wait."""
    if (keeping := run.keep_end(settled)) is not None:
        await keeping


async def publish(run: TaskRun) -> None:
    """Publish the end, whether or not the store has to wait."""
    if (publishing := run.publish(REPLIED)) is not None:
        await publishing


def make_send(*, takes_direct: bool = False) -> Send:
    message = Message("m1", Role.USER, (Part(text="hi"),))
    return Send(message=message, question="hi", waits=False, takes_direct=takes_direct, plain_is_direct=True)


async def test_a_task_that_is_told_of_while_its_turn_is_settled_is_kept_with_its_end() -> None:
    """Otherwise no process stores a plain reply; the ledger had decided before it was told of it."""
    store = MemoryTaskStore(Clock())
    run = run_on(store, keeps_plain=False)
    run.extra_writes(REPLIED)
    feed = await run.start_feed()
    await keep_end(run, REPLIED)
    kept = await store.find(run.task.id, caller_id=1)
    assert kept is not None
    assert kept == feed.task
    assert kept.state is State.COMPLETED


@pytest.mark.parametrize("text", ["hi", ""])
def test_the_events_of_a_plain_reply_make_the_task_that_was_kept(text: str) -> None:
    made = task(text_type="text/markdown")
    ended = plain_end(made, SettledTurn(Outcome.COMPLETED, "", text), at(5))
    assert after(made, events_of_plain(ended)) == ended
    assert [event.seq for event in events_of_plain(ended)] == list(range(1, ended.seq + 1))


async def test_a_plain_reply_is_told_as_it_was_kept_to_those_who_come_after_it() -> None:
    run = run_on(MemoryTaskStore(Clock()))
    run.extra_writes(REPLIED)
    await keep_end(run, REPLIED)
    assert [event.seq for event in run.last_events] == [1, 2, 3]
    assert after(run.opening, run.last_events) == run.task


async def test_an_end_that_cannot_be_kept_leaves_no_one_waiting() -> None:
    run = run_on(Broken(Clock()))
    feed = await run.start_feed()
    with pytest.raises(RuntimeError):
        await keep_end(run, REPLIED)
    assert not feed.is_fed
    assert feed.task.state is State.COMPLETED


class SlowToPut(MemoryTaskStore):
    """A store in which a new task, or the end of one that was not followed, takes some turns of the loop."""

    def put_now(self, task: Task) -> bool:
        return False

    async def put(self, task: Task) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        super().put_now(task)


@pytest.mark.parametrize("turns", range(-5, 6))
async def test_a_follower_that_comes_while_the_end_is_kept_sees_the_end(turns: int) -> None:
    """`turns`: how much later than the end the follower comes."""
    store = SlowToPut(Clock())
    run = run_on(store)

    async def later(turns: int, work: Coroutine[Any, Any, Any]) -> Any:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await work

    run.extra_writes(REPLIED)
    feed, _ = await asyncio.gather(later(turns, run.start_feed()), later(-turns, publish(run)))
    assert (run.is_settled, feed.is_fed) == (True, False)
    assert await store.find(run.task.id, caller_id=1) == run.task == feed.task
    assert feed.task.state is State.COMPLETED


@pytest.mark.parametrize("is_released", [True, False])
async def test_the_end_of_an_unsent_ask_releases_its_key_once_and_keeps_no_follower_waiting(
    *, is_released: bool
) -> None:
    """The transaction that settled the turn released the key, or was given up; pytest lets no test here do it."""
    run = run_on(MemoryTaskStore(Clock()), claim=KeyClaim(pk=1, task_id="task-1", chat_id="c", is_new=True))
    feed = await run.start_feed()
    unsent = SettledTurn(Outcome.FAILED, TurnFailure.NOT_DELIVERED, has_extra_writes=is_released, is_unsent=True)
    with nullcontext() if is_released else pytest.raises(RuntimeError, match="Database access not allowed"):
        await keep_end(run, unsent)
    assert not feed.is_fed
    assert not feed.task.is_open


class Away(Waiting):
    """A store that is out of reach once the task is there."""

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        raise Unavailable


class Full(MemoryTaskStore):
    """A store whose disk is full."""

    async def put(self, task: Task) -> None:
        raise Unavailable


async def test_a_refusal_whose_task_cannot_be_kept_names_no_task() -> None:
    run = run_on(Full(Clock()))
    with pytest.raises(Unavailable):
        await run.refuse(Offline())
    assert (run.is_refused, run.is_settled) == (False, False)


async def test_a_task_is_followed_with_all_that_happened_to_it_so_far() -> None:
    store = MemoryTaskStore(Clock())
    run = run_on(store)
    run.take(PostedChunk("c", 0, "hi"))
    feed = await run.start_feed()
    await feed.wait_for_events(0, 5)
    assert [event.seq for event in feed.since(0) or ()] == [1, 2]
    assert await store.find(run.task.id, caller_id=1) == feed.task
    assert (feed.task.state, feed.task.reply_text) == (State.WORKING, "hi")


class Slow(Waiting):
    """A store that takes longer than its agent from one chunk to the next."""

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        await asyncio.sleep(0.02)
        await super().append(task, events)


async def test_an_agent_that_goes_on_keeps_no_follower_waiting() -> None:
    run = run_on(Slow(Clock()))

    async def talk() -> None:
        for number in itertools.count():
            run.take(PostedChunk("c", number, "on "))
            await asyncio.sleep(0.001)

    talking = asyncio.create_task(talk())
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        feed = await run.start_feed()
        assert await run.start_feed() is feed
        assert await feed.wait_for_events(0, 5)
    assert not talking.done()
    talking.cancel()


async def test_the_end_closes_an_artifact_that_is_kept_in_the_moment_of_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ledger's thread makes the end while the loop notes what it kept."""
    run_module = import_module(TaskRun.__module__)
    run, left_open = run_on(MemoryTaskStore(Clock())), run_module.left_open
    settling = threading.Thread(target=run.extra_writes, args=(REPLIED,))

    def settle_meanwhile(*noted: Any) -> Any:
        if settling.ident is None and isinstance(noted[1][-1], ArtifactEvent):
            settling.start()
            settling.join(0.2)  # it may have to wait for the loop
        return left_open(*noted)

    monkeypatch.setattr(run_module, "left_open", settle_meanwhile)
    feed = await run.start_feed()
    run.take(ExtraPiece("c", 0, ArtifactPiece("a", (Part(text="hi"),))))
    await feed.wait_for_events(1, 5)
    await asyncio.to_thread(settling.join)
    await publish(run)
    closed = [one for one in run.last_events if isinstance(one, ArtifactEvent) and one.artifact.id == "a"]
    assert [one.last_chunk for one in closed] == [True]


async def test_a_follower_who_leaves_at_once_stops_no_recording() -> None:
    run = run_on(Slow(Clock()))
    run.take(PostedChunk("c", 0, "hi"))
    leaving = asyncio.create_task(run.start_feed())
    await asyncio.sleep(0.001)
    leaving.cancel()
    feed = await run.start_feed()
    assert await feed.wait_for_events(0, 5)
    assert feed.task.reply_text == "hi"


async def test_a_task_whose_beginning_cannot_be_kept_is_followed_all_the_same() -> None:
    run = run_on(Away(Clock()))
    feed = await run.start_feed()
    assert feed.is_fed
    assert feed.task == run.opening


async def test_a_request_for_approval_that_cannot_be_kept_leaves_the_wait_its_time() -> None:
    """The answer tells the client meanwhile that the hub is there."""
    run = run_on(Away(Clock()))
    run.take(ExtraPiece("c", 0, ApprovalAsked("r1", "Bash", "ls")))
    async with asyncio.timeout(3):
        assert not await run.answered(0.2)


class SlowToAnswer(Waiting):
    """A store that others read anew before it tells the turn that it kept an event."""

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        await super().append(task, events)
        await asyncio.sleep(0.1)


async def test_a_feed_that_is_ahead_of_its_turn_leaves_the_loop_to_others() -> None:
    """A request that found the task in its store follows it, before the turn notes what was kept."""
    store = SlowToAnswer(Clock())
    run = run_on(store)
    feed = await run.start_feed()
    run.take(ExtraPiece("c", 0, ApprovalAsked("r1", "Bash", "ls")))
    while (found := await store.find(run.task.id, caller_id=1)) is None or not found.seq:
        await asyncio.sleep(0)
    feed.skip_to(found)
    assert feed.task.seq > run.task.seq
    assert await run.answered(1)


def ended() -> Ask:
    """An ask whose turn has just ended."""
    one = ask(published())
    end(admitted(one))
    return one


@pytest.mark.django_db(transaction=True)
async def test_an_end_that_is_not_told_to_who_came_last_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    asked = await db_call(ended)()
    late = task(chat_id=asked.chat_id, caller_id=asked.caller_id)
    store, feeds = MemoryTaskStore(Clock()), Feeds()
    await store.put(late)  # its process died between the end and the store
    pushes = Pushes(
        feeds,
        TaskReader(StoresById(store, {}), feeds, reply_wait_s=60),
        LocalPost(),
        lambda: None,
        look_every_s=0.01,
    )
    await pushes.add(late, PushTarget(url="https://push.invalid/"))
    said = [one.__dict__["task_id"] for one in caplog.records if one.message == "push.end_not_told"]
    assert said == [late.id]


@pytest.mark.parametrize(("reason", "state"), [("not_delivered", "INPUT_REQUIRED"), ("canceled", "CANCELED")])
async def test_a_further_message_that_was_not_sent_leaves_its_task_as_it_was(reason: str, state: str) -> None:
    store = MemoryTaskStore(Clock())
    before = task(state=State.INPUT_REQUIRED, seq=4, turns=1)
    await store.put(before)
    feeds = Feeds()
    pushes = Pushes(feeds, TaskReader(StoresById(store, {}), feeds, reply_wait_s=60), LocalPost(), lambda: None)
    begun = replace(before, state=State.WORKING, seq=5, turns=2, chat_id="next")
    run = TaskRun(ASK, begun, make_send(), store=store, feeds=feeds, pushes=pushes, before=before)
    feed = await run.start_feed()
    unsent = SettledTurn(Outcome.FAILED, reason, is_unsent=True)
    (written,) = [query for query in run.extra_writes(unsent) if "SET chat_id" in query.statement] or [None]
    await keep_end(run, unsent)
    assert feed.task.state is State[state]
    assert await store.find(before.id, caller_id=1) == run.task == feed.task
    if reason == "canceled":
        assert (written, run.unsent_text) == (None, "")
        return
    assert written is not None
    assert written.values == [before.chat_id, before.id]
    assert replace(run.task, seq=before.seq, updated_at=before.updated_at) == before
    assert run.unsent_text == "agent channel offline"
