"""Finding a task for its caller. An open one is checked against its turn, which alone knows whether it ended."""

from datetime import timedelta

import msgspec

from a2a_bridge.errors import failure_text
from a2a_bridge.tasks.record import State, Task, TaskStore
from agents.models import Turn
from agents.types import Failure
from kit.async_db import db_call
from kit.clock import db_now

TOLD_WITHIN = timedelta(seconds=30)


class TaskFinder:
    """Reads a task store that may hold what a dead process left open."""

    def __init__(self, tasks: TaskStore, *, reply_wait_s: float) -> None:
        self._tasks = tasks
        self._reply_wait_s = reply_wait_s

    async def __call__(self, task_id: str, caller_id: int) -> Task | None:
        """The caller's task, None when there is none."""
        task = await self._tasks.find(task_id, caller_id=caller_id)
        if task is None or task.is_terminal:
            return task
        reason = await db_call(failure_of)(task.chat_id)
        if reason is None:
            return await self._tasks.find(task_id, caller_id=caller_id)  # its end may have come meanwhile
        return msgspec.structs.replace(
            task,
            state=State.FAILED,
            text=failure_text(reason, self._reply_wait_s),
            reply_id=f"msg-{task.chat_id}",
        )


def failure_of(chat_id: str) -> str | None:
    """Why a turn failed; None while it is open, or when it completed and its task is about to say so."""
    turn = Turn.objects.filter(chat_id=chat_id).first()
    if turn is None:
        return Failure.NOT_RECORDED
    ended = turn.settled_at
    if turn.outcome == Turn.Outcome.COMPLETED and ended is not None and ended < db_now() - TOLD_WITHIN:
        return Failure.REPLY_LOST
    return turn.reason if turn.outcome == Turn.Outcome.FAILED else None
