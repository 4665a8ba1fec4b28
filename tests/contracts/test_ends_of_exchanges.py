"""The end of a turn under an Idempotency-Key reaches its followers, also while the database is away."""

import pytest

from a2a_bridge.service.repeats import KeyClaim
from a2a_bridge.service.tasks.feed import Feed
from agents.core.dispatch import Dispatcher, OnSettled
from agents.core.ledger import ExtraWrites
from agents.core.types import Ask, OpenTurn, SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome, TurnFailure
from tests.contracts.exchanges import begin_send

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
    _, run = await begin_send(dispatcher, CLAIM)
    return await run.start_feed()


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
