"""Which requests keep a turn going, and when the last of them cancels it by leaving."""

import pytest

from a2a_bridge.service.calls import AgentCaller, Call
from a2a_bridge.service.exchange import Exchanges
from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.dialects.hub import HUB
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import Message, Role
from accounts.authn import Identity
from agents.core.dispatch import CANCELED, Dispatcher, OnSettled
from agents.core.ledger import ExtraWrites
from agents.core.post import JoinTurn, LeaveTurn, LocalPost
from agents.core.types import Ask, AskTarget, OpenTurn, TurnEnding
from agents.core.waiting import RunningTurn
from agents.transcript.pieces import Part
from tests.contracts.stored_tasks import Clock

SEND = Send(message=Message("m", Role.USER, (Part(text="what?"),)), question="what?")


class Canceling(Dispatcher):
    """Admits each ask, and records what is canceled."""

    def __init__(self, *, in_queue: bool = False) -> None:
        self.canceled: list[str] = []
        self._is_busy = in_queue

    async def ask(self, ask: Ask, on_settled: OnSettled, extra_writes: ExtraWrites | None = None) -> RunningTurn:
        turn = OpenTurn(ask=ask, connection_id=1, link_process="p", text=ask.question)
        return RunningTurn(turn, in_queue=self._is_busy)

    def cancel(self, chat_id: str, ending: TurnEnding = CANCELED) -> bool:
        self.canceled.append(chat_id)
        return True


async def followed(dispatcher: Dispatcher, followers: int) -> tuple[Exchanges, TaskRun]:
    """A turn for which so many requests wait."""
    store, feeds, post = MemoryTaskStore(Clock()), Feeds(), LocalPost()
    exchanges = Exchanges(
        dispatcher=dispatcher,
        tasks=StoresById(store, {}),
        feeds=feeds,
        pushes=Pushes(feeds, TaskReader(StoresById(store, {}), feeds, reply_wait_s=60), post, lambda: None),
        post=post,
        reply_wait_s=60,
        process_id="here",
    )
    identity = Identity(1, "session", "", 1, "bob", is_staff=False, is_stale=False)
    caller = AgentCaller(identity, AskTarget(1, 1, "a/b"))
    call = Call(caller=caller, dialect=HUB, operation=Operation.SEND, request=SEND)
    run = await exchanges.start(call, SEND)
    run.followers = followers
    return exchanges, run


@pytest.mark.parametrize(
    ("is_answered", "cancels"),
    [(False, True), (False, False), (True, False)],
    ids=["canceling", "without canceling", "given the task"],
)
async def test_the_last_of_two_requests_cancels_unless_the_first_lets_the_turn_go_on(
    *, is_answered: bool, cancels: bool
) -> None:
    dispatcher = Canceling()
    exchanges, run = await followed(dispatcher, 2)
    exchanges.leave(run, is_answered=is_answered, cancels=cancels)
    assert dispatcher.canceled == []
    exchanges.leave(run, is_answered=False, cancels=True)
    assert dispatcher.canceled == ([run.task.chat_id] if cancels else [])


async def test_a_request_for_pushes_keeps_the_turn_going() -> None:
    dispatcher = Canceling()
    exchanges, run = await followed(dispatcher, 1)
    (await run.tell()).has_pushes = True
    exchanges.leave(run, is_answered=False, cancels=True)
    assert dispatcher.canceled == []


async def test_a_request_of_another_process_keeps_the_turn_going_until_it_leaves() -> None:
    dispatcher = Canceling()
    exchanges, run = await followed(dispatcher, 1)
    await exchanges.join(JoinTurn(run.task.chat_id, follower="elsewhere"))
    exchanges.leave(run, is_answered=False, cancels=True)
    exchanges.take_leave(LeaveTurn(run.task.chat_id, "not known"))
    assert dispatcher.canceled == []
    exchanges.take_leave(LeaveTurn(run.task.chat_id, "elsewhere"))
    assert dispatcher.canceled == [run.task.chat_id]


async def test_the_last_request_gives_up_the_position_of_a_queued_ask_by_leaving() -> None:
    dispatcher = Canceling(in_queue=True)
    exchanges, run = await followed(dispatcher, 1)
    exchanges.leave(run, is_answered=False, cancels=False)
    assert dispatcher.canceled == [run.task.chat_id]
