"""A question, its task and its running turn: what both SendMessage methods work with."""

import asyncio
import hashlib
from datetime import UTC, datetime

import msgspec

from a2a_bridge.errors import denied_text, failure_text
from a2a_bridge.tasks.record import State, Task, TaskStore
from accounts.authn import Identity
from agents.dispatch import Dispatcher
from agents.errors import Denied
from agents.types import Ask, Outcome, SettledTurn, Target
from agents.waiting import RunningTurn
from kit.ids import time_ordered, unguessable
from kit.waits import done_within

Key = tuple[int, int, str, bytes]


class Exchange:
    """One task while its caller is served: as it began, as it is. `running` is None when it was refused."""

    __slots__ = ("opening", "running", "task")

    def __init__(self, task: Task, running: RunningTurn | None = None) -> None:
        self.opening = self.task = task
        self.running = running

    async def ended(self, within_s: float) -> bool:
        """Wait for the end; whether it came in time. Leaving does not stop the turn."""
        return self.running is None or await done_within(self.running.settled, within_s)


class Exchanges:
    """Starts exchanges; an identical message that is still being answered joins its exchange."""

    def __init__(self, *, dispatcher: Dispatcher, tasks: TaskStore, reply_wait_s: float) -> None:
        self._dispatcher = dispatcher
        self._tasks = tasks
        self._reply_wait_s = reply_wait_s
        self._open: dict[Key, asyncio.Future[Exchange]] = {}

    async def start(
        self, identity: Identity, agent: Target, message_id: str, question: tuple[str, ...], *, told_early: bool
    ) -> Exchange:
        """Ask, or join. `told_early`: the caller learns the task's id before its end, so it is kept at once.

        Raises:
            NotPublished, Unavailable: nothing was sent.
        """
        body = hashlib.blake2b("\0".join(question).encode(), digest_size=16).digest()
        key = (identity.user_id, agent.session_id, message_id, body)
        if (same := self._open.get(key)) is not None:
            return await asyncio.shield(same)
        self._open[key] = started = asyncio.get_running_loop().create_future()
        try:
            exchange = await self._ask(
                _working(identity, agent, message_id, question), agent, identity.login, key, told_early=told_early
            )
        except BaseException as failure:
            self._open.pop(key, None)
            _pass_on(failure, started)
            raise
        started.set_result(exchange)
        return exchange

    async def _ask(self, task: Task, agent: Target, login: str, key: Key, *, told_early: bool) -> Exchange:
        exchange = Exchange(task)
        if told_early:
            await self._tasks.put(task)

        async def keep_end(settled: SettledTurn) -> None:
            self._open.pop(key, None)
            exchange.task = self._ended(task, settled)
            await self._tasks.put(exchange.task)

        try:
            exchange.running = await self._dispatcher.ask(self._ask_of(task, agent, login), keep_end)
        except Denied as denied:
            self._open.pop(key, None)
            exchange.task = exchange.opening = _end(task, State.FAILED, denied_text(denied, agent.handle))
            await self._tasks.put(exchange.task)
        except BaseException:
            if told_early:
                await self._tasks.drop(task)
            raise
        return exchange

    def _ask_of(self, task: Task, agent: Target, login: str) -> Ask:
        return Ask(
            chat_id=task.chat_id,
            target=agent,
            caller_id=task.caller_id,
            caller_login=login,
            surface="a2a",
            question="\n".join(task.question),
            wait_s=self._reply_wait_s,
        )

    def _ended(self, task: Task, settled: SettledTurn) -> Task:
        if settled.outcome is Outcome.COMPLETED:
            return _end(task, State.COMPLETED, settled.text)
        return _end(task, State.FAILED, failure_text(settled.reason, self._reply_wait_s))


def timestamp() -> str:
    """Now, as A2A writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _working(identity: Identity, agent: Target, message_id: str, question: tuple[str, ...]) -> Task:
    return Task(
        id=unguessable("task-"),
        caller_id=identity.user_id,
        handle=agent.handle,
        chat_id=time_ordered(),
        message_id=message_id,
        question=question,
        state=State.WORKING,
        updated_at=timestamp(),
    )


def _end(task: Task, state: State, text: str) -> Task:
    return msgspec.structs.replace(
        task, state=state, text=text, updated_at=timestamp(), reply_id=f"msg-{task.id[5:]}"
    )


def _pass_on(failure: BaseException, joined: asyncio.Future[Exchange]) -> None:
    """Those who joined get the same failure; when nobody did, asyncio must not complain."""
    if isinstance(failure, Exception):
        joined.set_exception(failure)
        joined.exception()
    else:
        joined.cancel()
