"""The ledger's thread when the database misbehaves: nothing twice, nothing lost, no caller waits for ever.

The faults are real: SQLite triggers refuse a row, and a second connection holds the write lock.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from django.db import connection
from msgspec.structs import replace

from agents.core.ask_queue import AskQueue
from agents.core.dispatch import CANCELED
from agents.core.errors import AlreadyAsked, MustWait, Offline, Unavailable
from agents.core.ledger import Ledger, thread, worker
from agents.core.types import Ask, LookUpResult, OpenTurn, SettledTurn
from agents.core.waiting import RunningTurn
from agents.models import QueuedAsk, Turn
from agents.models.choices import Outcome, TurnFailure
from kit import sql
from lab.waiting import eventually
from tests.contracts.rows import COMPLETED, HOME, ask, published, settling

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def ledger(short_lock_wait: None) -> Iterator[Ledger]:
    if connection.vendor != "sqlite":
        pytest.fail("these faults are made with SQLite; deselect the module elsewhere")
    serving = Ledger(home=HOME)
    yield serving
    serving.close()


@contextmanager
def other_program() -> Iterator[sqlite3.Connection]:
    """A connection that is not the hub's."""
    other = sqlite3.connect(str(connection.settings_dict["NAME"]), isolation_level=None)
    try:
        yield other
    finally:
        other.close()


@contextmanager
def refusing(question: str) -> Iterator[None]:
    """The database refuses to store one question, and only that."""
    refusal = f"WHEN NEW.question = '{question}' BEGIN SELECT RAISE(ABORT, 'refused'); END"
    with other_program() as other:
        other.execute(f"CREATE TRIGGER refuse BEFORE INSERT ON agents_turn {refusal}")
        yield
        other.execute("DROP TRIGGER refuse")


@contextmanager
def locked() -> Iterator[None]:
    """Another program holds SQLite's write lock."""
    with other_program() as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_asks_that_arrive_together_are_all_answered(ledger: Ledger) -> None:
    agents = await asyncio.to_thread(lambda: [published() for _ in range(20)])
    asks = await asyncio.to_thread(lambda: [ask(agent) for agent in agents])
    turns = await asyncio.gather(*(ledger.admit(one) for one in asks))
    assert [turn.ask for turn in turns] == asks
    ends = await asyncio.gather(*(settling(ledger, turn, COMPLETED) for turn in turns))
    assert {end.outcome for end in ends} == {Outcome.COMPLETED}


async def test_one_call_hands_all_results_of_a_batch_to_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, counts, handed_over = asyncio.get_running_loop(), thread.LedgerCounts(), []
    call_soon = loop.call_soon_threadsafe

    def listen(callback: Callable[..., object], *args: Any, **options: Any) -> asyncio.Handle:
        if isinstance(getattr(callback, "__self__", None), worker.Worker):
            handed_over.append(len(args[0]))
        return call_soon(callback, *args, **options)

    asks = await asyncio.to_thread(lambda: [ask(published()) for _ in range(20)])
    monkeypatch.setattr(loop, "call_soon_threadsafe", listen)
    ledger = Ledger(home=HOME, counts=counts)
    try:
        await asyncio.gather(*(ledger.admit(one) for one in asks))
    finally:
        ledger.close()
    assert sum(handed_over) == len(asks)
    assert len(handed_over) == counts.batches.buckets()[-1][1] < len(asks)


async def test_ends_of_large_replies_are_committed_one_by_one_and_hold_up_no_other_work(ledger: Ledger) -> None:
    agents = await asyncio.to_thread(lambda: [published() for _ in range(8)])
    asks = await asyncio.to_thread(lambda: [ask(agent) for agent in agents])
    turns = await asyncio.gather(*(ledger.admit(one) for one in asks))
    ended: list[str] = []

    async def end(turn: OpenTurn, text: str) -> None:
        settled = await settling(ledger, turn, replace(COMPLETED, text=text))
        assert settled.text == text
        ended.append(text[:5])

    large = ["large" + "x" * thread.LARGE_REPLY] * 6
    await asyncio.gather(*map(end, turns, [*large, "small", "small"]))
    assert ended[:3].count("small") == 2  # at most one was begun before
    assert await asyncio.to_thread(Turn.objects.filter(outcome=Outcome.COMPLETED).count) == len(turns)


async def test_ends_of_large_replies_that_wait_are_stored_before_the_thread_ends() -> None:
    ledger = Ledger(home=HOME)
    asks = await asyncio.to_thread(lambda: [ask(published()) for _ in range(4)])
    turns = await asyncio.gather(*(ledger.admit(one) for one in asks))
    ending = replace(COMPLETED, text="x" * (thread.LARGE_REPLY + 1))
    ends = [asyncio.ensure_future(settling(ledger, turn, ending)) for turn in turns]
    await asyncio.sleep(0)
    await asyncio.to_thread(ledger.close)
    assert {end.outcome for end in await asyncio.gather(*ends)} == {Outcome.COMPLETED}


async def test_a_burst_is_done_in_batches_of_limited_size() -> None:
    counts = thread.LedgerCounts()
    ledger = Ledger(home=HOME, counts=counts)
    try:
        await asyncio.gather(*(ledger.look_up(None, "no/agent") for _ in range(500)))
    finally:
        ledger.close()
    buckets = counts.batches.buckets()
    assert buckets[-1] == ("+Inf", buckets[-2][1])
    assert buckets[-2][0] == str(worker.MAX_BATCH)


async def test_one_row_the_database_refuses_does_not_fail_its_neighbours(ledger: Ledger) -> None:
    good, bad = await asyncio.to_thread(lambda: (ask(published()), ask(published())))
    with refusing("poison"):
        both = ledger.admit(good), ledger.admit(replace(bad, question="poison"))
        results = await asyncio.gather(*both, return_exceptions=True)
    assert isinstance(results[0], OpenTurn)
    assert isinstance(results[1], Unavailable)
    assert await asyncio.to_thread(Turn.objects.count) == 1


async def test_what_shares_a_batch_that_breaks_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [RuntimeError()] * 3

    def broken(_: int) -> None:
        if faults:
            raise faults.pop()

    one = await asyncio.to_thread(lambda: ask(published()))
    counts = thread.LedgerCounts()
    monkeypatch.setattr(counts.batches, "add", broken)
    ledger = Ledger(home=HOME, counts=counts)
    asked = [work for _ in range(20) for work in (ledger.look_up(None, one.target.handle), ledger.admit(one))]
    try:
        answers = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 5)
    finally:
        ledger.close()
    assert not faults
    assert {type(answer) for answer in answers} <= {LookUpResult, Unavailable, OpenTurn, AlreadyAsked}


async def test_a_reply_the_database_refuses_still_ends_its_turn(ledger: Ledger) -> None:
    turn = await ledger.admit(await asyncio.to_thread(lambda: ask(published())))
    with other_program() as other:
        other.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON agents_event WHEN NEW.payload LIKE '%poison%'"
            " BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
        ending = settling(ledger, turn, replace(COMPLETED, text="poison"))
        settled = await asyncio.wait_for(ending, 20)
        other.execute("DROP TRIGGER refuse")
    assert settled == SettledTurn(Outcome.FAILED, TurnFailure.NOT_RECORDED)
    assert not await asyncio.to_thread(Turn.objects.holding().exists)


async def test_a_settle_outlives_a_database_that_is_away(ledger: Ledger) -> None:
    one = await asyncio.to_thread(lambda: ask(published()))
    turn = await ledger.admit(one)
    with locked():
        ending = settling(ledger, turn, COMPLETED)
        refused = await asyncio.gather(ledger.admit(one), return_exceptions=True)
        assert isinstance(refused[0], Unavailable)
        assert not ending.done()
    assert (await asyncio.wait_for(ending, 20)).outcome is Outcome.COMPLETED


async def test_an_ask_refused_because_the_database_was_away_leaves_nothing_open(ledger: Ledger) -> None:
    agent = await asyncio.to_thread(published)
    one = await asyncio.to_thread(lambda: ask(agent))
    with locked():
        refused = await asyncio.gather(ledger.admit(one), return_exceptions=True)
        assert isinstance(refused[0], Unavailable)

    async def nothing_open() -> bool:
        return not await asyncio.to_thread(Turn.objects.open().exists)

    await eventually(nothing_open, "the ask is withdrawn")
    assert isinstance(await ledger.admit(await asyncio.to_thread(lambda: ask(agent, "bob"))), OpenTurn)


async def test_an_ask_whose_caller_is_cut_off_while_it_is_decided_leaves_nothing_open(ledger: Ledger) -> None:
    agent = await asyncio.to_thread(published)
    one = await asyncio.to_thread(lambda: ask(agent))
    asking = asyncio.ensure_future(ledger.admit(one))
    await asyncio.sleep(0)  # it is with the ledger now
    asking.cancel()
    assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], asyncio.CancelledError)

    async def is_withdrawn() -> bool:
        ends = await asyncio.to_thread(lambda: [turn.outcome for turn in Turn.objects.all()])
        return ends == [Outcome.FAILED]

    await eventually(is_withdrawn, "the ask is withdrawn")
    assert await asyncio.to_thread(lambda: agent.spent) == 0
    assert isinstance(await ledger.admit(await asyncio.to_thread(lambda: ask(agent, "bob"))), OpenTurn)


@asynccontextmanager
async def waiting(ledger: Ledger) -> AsyncIterator[tuple[RunningTurn, asyncio.Task[OpenTurn | SettledTurn]]]:
    """An ask that waits in a line, and its wait; afterwards its place goes."""

    def asks() -> tuple[Ask, Ask]:
        agent = published(queue_max=3, queue_wait_s=60)
        return ask(agent), replace(ask(agent, "bob"), queues=True)

    first, second = await asyncio.to_thread(asks)
    await ledger.admit(first)
    with pytest.raises(MustWait) as waits:
        await ledger.admit(second)
    running = RunningTurn(second)
    line = AskQueue(ledger, time.monotonic)
    yield running, asyncio.create_task(line.wait(running, waits.value))

    async def is_gone() -> bool:
        return not await asyncio.to_thread(QueuedAsk.objects.exists)

    await eventually(is_gone, "the place is deleted")


async def test_a_canceled_ask_leaves_no_place_when_the_ledger_is_full(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with waiting(ledger) as (running, wait):
        monkeypatch.setattr(worker, "MAX_WAITING", 0)
        running.end(CANCELED)
        settled = await asyncio.wait_for(wait, 5)
        assert isinstance(settled, SettledTurn)
        assert settled.reason == TurnFailure.CANCELED


async def test_a_canceled_ask_leaves_no_place_when_the_database_is_away(ledger: Ledger) -> None:
    async with waiting(ledger) as (running, wait):
        with locked():
            running.end(CANCELED)
            await asyncio.wait_for(wait, 10)


async def test_denials_are_raised_and_their_rows_are_there(ledger: Ledger) -> None:
    one = await asyncio.to_thread(lambda: ask(published(online=False)))
    with pytest.raises(Offline):
        await ledger.admit(one)
    assert await asyncio.to_thread(lambda: Turn.objects.get().reason) == "offline"


async def test_a_surface_that_cannot_say_what_to_write_holds_up_no_turn(ledger: Ledger) -> None:
    agents = await asyncio.to_thread(lambda: [ask(published()) for _ in range(3)])
    turns = await asyncio.gather(*(ledger.admit(one) for one in agents))
    kept: list[SettledTurn] = []

    def broken(settled: SettledTurn) -> list[sql.Query]:
        raise ValueError(settled)

    def refused(settled: SettledTurn) -> list[sql.Query]:
        return [sql.Query("INSERT INTO agents_turn (id) VALUES (1)")]

    def sound(settled: SettledTurn) -> list[sql.Query]:
        kept.append(settled)
        return []

    ending = (
        settling(ledger, turn, COMPLETED, extra_writes)
        for turn, extra_writes in zip(turns, (broken, refused, sound), strict=True)
    )
    ends = await asyncio.wait_for(asyncio.gather(*ending), 5)
    assert [end.outcome for end in ends] == [Outcome.COMPLETED] * 3
    assert [end.has_extra_writes for end in ends] == [False, False, True]
    assert kept[-1] == ends[-1]
    assert not await asyncio.to_thread(Turn.objects.open().exists)


async def test_work_that_is_put_while_the_ledger_ends_is_done(ledger: Ledger) -> None:
    first = await asyncio.to_thread(lambda: ask(published()))
    turn = await ledger.admit(first)
    with locked():
        settled = asyncio.ensure_future(settling(ledger, turn, COMPLETED))
        await asyncio.sleep(0)
        ending = asyncio.ensure_future(ledger.end())
        await asyncio.sleep(0)  # from now on the thread ends after the work that it has
        late = asyncio.ensure_future(ledger.look_up(None, first.target.handle))
        await asyncio.sleep(0)
    assert (await asyncio.wait_for(settled, 20)).outcome == Outcome.COMPLETED
    await asyncio.wait_for(ending, 20)
    assert (await asyncio.wait_for(late, 20)).agent is not None


async def test_a_ledger_that_is_left_unfinished_says_how_much_was_not_begun(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    asks = await asyncio.to_thread(lambda: [ask(published()) for _ in range(3)])
    turns = [await ledger.admit(one) for one in asks]

    async def is_locked_out() -> bool:
        return "ledger.batch_failed" in caplog.messages

    with locked():
        ending = [settling(ledger, turns[0], COMPLETED)]
        await eventually(is_locked_out, "the thread has begun the first")
        ending += [settling(ledger, turn, COMPLETED) for turn in turns[1:]]
        await asyncio.sleep(0)  # they are with the ledger now
        ledger.close(0.01)
    ends = await asyncio.wait_for(asyncio.gather(*ending), 20)
    assert [end.outcome for end in ends] == [Outcome.COMPLETED] * 3
    assert [one.__dict__["waiting"] for one in caplog.records if one.message == "ledger.unfinished"] == [2]
