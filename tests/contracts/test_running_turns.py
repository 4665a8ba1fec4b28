"""The end of a turn at its dispatcher: one ending, whenever it comes, and no follower is left waiting."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any

import pytest
from msgspec.structs import replace

from agents.core import ask_queue
from agents.core.ask_queue import AskQueue
from agents.core.dispatch import Dispatcher
from agents.core.errors import Busy, MustWait, NoReceipt, NotDelivered, Unavailable
from agents.core.ledger import Ledger
from agents.core.ledger.thread import OnSettled
from agents.core.live_views import LiveViews
from agents.core.post import Final, LocalPost, PostedChunk
from agents.core.types import Ask, OpenTurn, SettledTurn, TurnEnding
from agents.core.waiting import RunningTurn, WaitingTurns
from agents.models.choices import Outcome, TurnFailure
from hub.caller_rate import CallerRate
from kit.tasks import TaskSet
from tests.contracts.rows import ASK

REPLY = Final("c", 0, "hi")


class OpenHanded(Ledger):
    """Admits each ask, and stores each end once `may_settle` is set; `stored` stands if it is given."""

    def __init__(self, stored: SettledTurn | Exception | None = None) -> None:
        self.endings: list[TurnEnding] = []
        self.may_settle = asyncio.Event()
        self.may_settle.set()
        self._stored = stored
        self._settling = TaskSet()

    async def admit(self, asked: Ask, *, in_queue: bool = False) -> OpenTurn:
        return OpenTurn(ask=asked, connection_id=1, link_process="p", text="what?", link="test")

    def settle(self, turn: OpenTurn, ending: TurnEnding, then: OnSettled, extra_writes: Any = None) -> None:
        self.endings.append(ending)
        self._settling.start(self._settle(ending, then), name="settle")

    async def _settle(self, ending: TurnEnding, then: OnSettled) -> None:
        await self.may_settle.wait()
        then(self._stored or SettledTurn(ending.outcome, ending.reason, ending.text))


class Slow:
    """A link whose hand-over takes until the test ends it, and may fail then."""

    def __init__(self) -> None:
        self.delivered: asyncio.Future[None] | None = None
        self.withdrawn = 0

    def deliver_now(self, running: RunningTurn) -> bool:
        return False

    async def deliver(self, running: RunningTurn) -> None:
        self.delivered = asyncio.get_running_loop().create_future()
        await self.delivered

    async def withdraw(self, turn: OpenTurn) -> None:
        self.withdrawn += 1

    async def close(self) -> None:
        pass


class Hub:
    """A dispatcher with that link and ledger. `hand_over`: goes on until the test sets its end."""

    def __init__(self, ledger: OpenHanded | None = None) -> None:
        self.ledger = ledger or OpenHanded()
        self.link, self.waiting, self.released = Slow(), WaitingTurns(self._release), list[str]()
        self.late: list[str] = []
        self.dispatcher = Dispatcher(
            links={"test": self.link},
            ledger=self.ledger,
            waiting=self.waiting,
            limits=CallerRate(0),
            live=LiveViews(process_id="p", post=LocalPost()),
            clock=monotonic,
        )

    async def _release(self, chat_id: str, late: str, usage: object) -> None:
        self.released.append(chat_id)
        self.late.append(late)

    async def asked(self, running: RunningTurn | None = None) -> RunningTurn:
        """A turn whose prompt is being handed over."""
        started = await self.dispatcher.ask(running or RunningTurn(ASK))
        await asyncio.sleep(0)
        assert self.link.delivered is not None
        return started

    def end_hand_over(self, failure: Exception | None = None) -> None:
        assert self.link.delivered is not None
        if failure is None:
            self.link.delivered.set_result(None)
        else:
            self.link.delivered.set_exception(failure)


def reply(hub: Hub) -> None:
    hub.waiting.take(REPLY)


def cancel(hub: Hub) -> None:
    assert hub.dispatcher.cancel("c")


def lose(hub: Hub) -> None:
    hub.dispatcher.fail_turns_of({1})


def cancel_and_reply(hub: Hub) -> None:
    """The caller cancels, and the agent answers all the same."""
    cancel(hub)
    reply(hub)


@pytest.mark.parametrize(
    ("comes", "failure", "reason"),
    [
        (reply, None, ""),
        (reply, NoReceipt(), TurnFailure.CHANNEL_LOST),
        (cancel, None, TurnFailure.CANCELED),
        (cancel, NotDelivered(), TurnFailure.NOT_DELIVERED),
        (lose, None, TurnFailure.CHANNEL_LOST),
        (cancel_and_reply, None, TurnFailure.CANCELED),
    ],
)
async def test_an_end_that_comes_during_the_hand_over_is_stored_once_the_hand_over_is_known(
    comes: Callable[[Hub], None], failure: Exception | None, reason: str
) -> None:
    hub = Hub()
    running = await hub.asked()
    comes(hub)
    await asyncio.sleep(0.01)
    assert not running.is_settled
    hub.end_hand_over(failure)
    assert (await asyncio.wait_for(running.settled, 5)).reason == reason
    assert len(hub.ledger.endings) == 1
    assert hub.dispatcher.open_turns == 0


async def test_a_canceled_turn_whose_agent_is_done_keeps_no_claim() -> None:
    hub = Hub()
    running = await hub.asked()
    cancel_and_reply(hub)
    hub.end_hand_over()
    await running.settled
    assert not hub.ledger.endings[0].keeps_claim


async def test_a_cancel_right_after_the_admission_reaches_a_turn_that_then_asks_no_agent() -> None:
    hub = Hub()
    running = await hub.dispatcher.ask(RunningTurn(ASK))
    cancel(hub)
    assert (await running.settled).reason == TurnFailure.CANCELED
    assert hub.link.delivered is None
    assert (hub.ledger.endings[0].keeps_claim, hub.ledger.endings[0].returns_budget) == (False, True)


async def test_the_deadline_also_ends_a_hand_over() -> None:
    hub = Hub()
    running = await hub.asked(RunningTurn(replace(ASK, wait_s=0.05)))
    assert (await asyncio.wait_for(running.settled, 5)).reason == TurnFailure.TIMEOUT
    assert hub.link.delivered is not None
    assert hub.link.delivered.cancelled()


async def test_a_drain_ends_a_turn_without_a_reply() -> None:
    hub = Hub()
    running = await hub.asked()
    hub.end_hand_over()
    await hub.dispatcher.drain(0)
    assert (await running.settled).reason == TurnFailure.SHUTDOWN
    with pytest.raises(Unavailable):
        await hub.dispatcher.ask(RunningTurn(ASK))


@pytest.mark.parametrize(
    ("stored", "outcome", "reason"),
    [
        (SettledTurn(Outcome.FAILED, "abandoned"), Outcome.FAILED, "abandoned"),
        (Unavailable(), Outcome.FAILED, TurnFailure.NOT_RECORDED),
    ],
    ids=["another process was first", "the database stays away"],
)
async def test_followers_see_the_end_that_stands(
    stored: SettledTurn | Exception, outcome: Outcome, reason: str
) -> None:
    hub = Hub(OpenHanded(stored))
    running = await hub.asked()
    hub.end_hand_over()
    reply(hub)
    settled = await running.settled
    assert (settled.outcome, settled.reason) == (outcome, reason)


async def test_what_comes_while_the_end_is_stored_is_late_and_another_ask_still_finds_the_turn() -> None:
    hub = Hub()
    running = await hub.asked()
    hub.end_hand_over()
    cancel(hub)
    hub.ledger.may_settle.clear()
    while not hub.ledger.endings:
        await asyncio.sleep(0)
    hub.waiting.take(REPLY)
    await asyncio.sleep(0)
    assert hub.released == ["c"]
    assert hub.dispatcher.find("c") is running
    assert not hub.dispatcher.cancel("c")
    hub.ledger.may_settle.set()
    assert (await running.settled).reason == TurnFailure.CANCELED
    assert hub.dispatcher.find("c") is None


async def test_a_late_reply_that_is_too_large_frees_its_agent_only_once_the_agent_is_done() -> None:
    hub = Hub()
    running = await hub.asked()
    hub.end_hand_over()
    cancel(hub)
    await running.settled
    hub.waiting.take(PostedChunk("c", 0, "part"))
    hub.waiting.take(Final("c", 1, None, TurnFailure.REPLY_TOO_LARGE))
    await asyncio.sleep(0)
    assert hub.released == []
    hub.waiting.take(Final("c", 1, None))
    await asyncio.sleep(0)
    assert (hub.released, hub.late) == (["c"], [""])


async def test_the_end_of_a_reply_that_was_too_large_brings_no_part_of_it_as_a_late_reply() -> None:
    hub = Hub()
    running = await hub.asked()
    hub.end_hand_over()
    hub.waiting.take(PostedChunk("c", 0, "part"))
    hub.waiting.take(Final("c", 1, None, TurnFailure.REPLY_TOO_LARGE))
    assert (await running.settled).reason == TurnFailure.REPLY_TOO_LARGE
    hub.waiting.take(Final("c", 1, None))
    await asyncio.sleep(0)
    assert (hub.released, hub.late) == (["c"], [""])


class Broken(RunningTurn):
    """A turn whose surface cannot keep the end."""

    def keep_end(self, settled: SettledTurn) -> Coroutine[Any, Any, None]:
        return self._keep()

    async def _keep(self) -> None:
        await asyncio.sleep(0)
        raise RuntimeError


FOLLOWERS: dict[str, Callable[[RunningTurn], Awaitable[object]]] = {
    "end": lambda running: running.ended(30),
    "pieces": lambda running: running.more_than(0, 30),
    "kind of answer": lambda running: running.until_decided.wait(30),
    "future": lambda running: asyncio.shield(running.settled),
}


@pytest.mark.parametrize("follow", FOLLOWERS.values(), ids=FOLLOWERS)
async def test_a_follower_that_is_cancelled_keeps_no_other_from_the_end(
    follow: Callable[[RunningTurn], Awaitable[object]],
) -> None:
    hub = Hub()
    running = await hub.asked(Broken(ASK))
    hub.end_hand_over()
    first, second, third = (asyncio.ensure_future(follow(running)) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    reply(hub)
    third.cancel()
    assert await asyncio.wait_for(second, 5)
    assert running.is_settled


async def test_a_follower_that_cancels_the_end_for_others_keeps_none_of_them_waiting() -> None:
    hub = Hub()
    running = await hub.asked()
    waiting = asyncio.ensure_future(running.ended(30))
    running.settled.cancel()
    hub.end_hand_over()
    reply(hub)
    assert await asyncio.wait_for(waiting, 5)


class Deciding(OpenHanded):
    """Lets the first decision of a waiting ask take until the test goes on; the ask must wait on after it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_deciding, self.may_decide = asyncio.Event(), asyncio.Event()

    async def admit(self, asked: Ask, *, in_queue: bool = False) -> OpenTurn:
        if not self.is_deciding.is_set():
            self.is_deciding.set()
            await self.may_decide.wait()
            raise WAITS
        return await super().admit(asked)


WAITS = MustWait(wait_s=60, refusal=Busy(), is_new=False)


async def test_a_wake_that_comes_while_a_waiting_ask_is_decided_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ask_queue, "LOOK_EVERY_S", 30)
    ledger = Deciding()
    queue = AskQueue(ledger, monotonic)
    waiting = asyncio.ensure_future(queue.wait(RunningTurn(ASK), WAITS))
    await asyncio.sleep(0)
    queue.wake_first(1)
    await ledger.is_deciding.wait()
    queue.wake_first(1)
    ledger.may_decide.set()
    assert isinstance(await asyncio.wait_for(waiting, 5), OpenTurn)
    assert queue.count == 0
