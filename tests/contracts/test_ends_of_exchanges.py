"""The end of a turn under an Idempotency-Key reaches its followers, also while the database is away."""

import pytest

from a2a_bridge.service.calls import AgentCaller, Call
from a2a_bridge.service.exchange import Exchanges
from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.repeats import KeyClaim
from a2a_bridge.service.tasks.feed import Feed, Feeds
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.dialects.hub import HUB
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import Message, Role
from accounts.authn import Identity
from agents.core.dispatch import Dispatcher, OnSettled
from agents.core.ledger import ExtraWrites
from agents.core.post import LocalPost
from agents.core.types import Ask, AskTarget, OpenTurn, SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome, TurnFailure
from agents.transcript.pieces import Part
from tests.contracts.stored_tasks import Clock

SEND = Send(message=Message("m", Role.USER, (Part(text="what?"),)), question="what?")
CLAIM = KeyClaim(pk=1, task_id="task-1", chat_id="c", is_new=True)


class Settled(Dispatcher):
    """Admits each ask, and settles it when the test says so.

    The database is away meanwhile: pytest lets no test here use it.
    """

    def __init__(self) -> None:
        self._on_settled: OnSettled | None = None

    async def ask(self, ask: Ask, on_settled: OnSettled, extra_writes: ExtraWrites | None = None) -> RunningTurn:
        self._on_settled = on_settled
        return RunningTurn(OpenTurn(ask=ask, connection_id=1, link_process="p", text=ask.question))

    async def settle(self, settled: SettledTurn) -> None:
        """The turn has ended."""
        assert self._on_settled is not None
        await self._on_settled(settled)


async def followed(dispatcher: Dispatcher) -> Feed:
    """A task that began under a key, and that is followed."""
    store, feeds = MemoryTaskStore(Clock()), Feeds()
    pushes = Pushes(feeds, TaskReader(StoresById(store, {}), feeds, reply_wait_s=60), LocalPost(), lambda: None)
    exchanges = Exchanges(
        dispatcher=dispatcher,
        tasks=StoresById(store, {}),
        feeds=feeds,
        pushes=pushes,
        post=LocalPost(),
        reply_wait_s=60,
        process_id="here",
    )
    identity = Identity(1, "session", "", 1, "bob", is_staff=False, is_stale=False)
    caller = AgentCaller(identity, AskTarget(1, 1, "a/b"))
    call = Call(caller=caller, dialect=HUB, operation=Operation.SEND, request=SEND, key="k")
    return await (await exchanges.start(call, SEND, CLAIM)).tell()


def unsent(*, has_extra_writes: bool) -> SettledTurn:
    reason = TurnFailure.NOT_DELIVERED
    return SettledTurn(Outcome.FAILED, reason, has_extra_writes=has_extra_writes, is_unsent=True)


async def test_a_key_that_the_end_released_is_not_released_again() -> None:
    dispatcher = Settled()
    feed = await followed(dispatcher)
    await dispatcher.settle(unsent(has_extra_writes=True))
    assert not feed.is_fed
    assert not feed.task.is_open


async def test_a_key_that_cannot_be_released_keeps_no_follower_waiting() -> None:
    dispatcher = Settled()
    feed = await followed(dispatcher)
    with pytest.raises(RuntimeError, match="Database access not allowed"):
        await dispatcher.settle(unsent(has_extra_writes=False))
    assert not feed.is_fed
    assert not feed.task.is_open
