"""The end of a turn under an Idempotency-Key reaches its followers, also while the database is away."""

import pytest

from a2a_bridge.service.repeats import KeyClaim
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.tasks.feed import Feed
from agents.core.dispatch import Dispatcher, Run
from agents.core.types import OpenTurn, SettledTurn
from agents.models.choices import Outcome, TurnFailure
from tests.contracts.exchanges import begin_send

CLAIM = KeyClaim(pk=1, task_id="task-1", chat_id="c", is_new=True)


class Admitting(Dispatcher):
    """Admits each ask. The database is away meanwhile: pytest lets no test here use it."""

    def __init__(self) -> None:
        pass

    async def ask(self, running: Run) -> Run:
        running.admit(OpenTurn(ask=running.ask, connection_id=1, link_process="p", text="what?"))
        return running


async def followed() -> tuple[TaskRun, Feed]:
    """A task that began under a key, and that is followed."""
    _, run = await begin_send(Admitting(), CLAIM)
    return run, await run.start_feed()


def unsent(*, has_extra_writes: bool) -> SettledTurn:
    reason = TurnFailure.NOT_DELIVERED
    return SettledTurn(Outcome.FAILED, reason, has_extra_writes=has_extra_writes, is_unsent=True)


async def test_a_key_that_the_end_released_is_not_released_again() -> None:
    run, feed = await followed()
    await run.keep_end(unsent(has_extra_writes=True))
    assert not feed.is_fed
    assert not feed.task.is_open


async def test_a_key_that_cannot_be_released_keeps_no_follower_waiting() -> None:
    run, feed = await followed()
    with pytest.raises(RuntimeError, match="Database access not allowed"):
        await run.keep_end(unsent(has_extra_writes=False))
    assert not feed.is_fed
    assert not feed.task.is_open
