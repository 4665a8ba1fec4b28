"""The requests that keep a turn going, and the last of them, which cancels the turn by leaving."""

import pytest

from a2a_bridge.service.exchange import Exchanges
from a2a_bridge.service.run import TaskRun
from agents.core.dispatch import CANCELED, Dispatcher, Run
from agents.core.post import JoinTurn, LeaveTurn
from agents.core.types import OpenTurn, TurnEnding
from tests.contracts.exchanges import begin_send


class Canceling(Dispatcher):
    """Admits each ask, and records what is canceled."""

    def __init__(self, *, in_queue: bool = False) -> None:
        self.canceled: list[str] = []
        self._is_busy = in_queue

    async def ask(self, running: Run) -> Run:
        self._running = {running.ask.chat_id: running}
        if not self._is_busy:
            running.admit(OpenTurn(ask=running.ask, connection_id=1, link_process="p", text="what?"))
        return running

    def cancel(self, chat_id: str, ending: TurnEnding = CANCELED) -> bool:
        self.canceled.append(chat_id)
        return True


async def followed(dispatcher: Dispatcher, followers: int) -> tuple[Exchanges, TaskRun]:
    """A turn for which so many requests wait."""
    exchanges, run = await begin_send(dispatcher)
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
    (await run.start_feed()).has_pushes = True
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
