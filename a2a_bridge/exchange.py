"""Starts the turns of tasks, the first and follow-ups, joins repeated messages, and cancels tasks that wait."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from a2a_bridge.errors import denied_text, not_continuable, refused
from a2a_bridge.idempotency import Claim, let_go
from a2a_bridge.joining import Key, OpenRuns, key_of
from a2a_bridge.pushes.pushes import IN_SEND, Pushes
from a2a_bridge.requests import PushTarget, Send
from a2a_bridge.tasks.chosen import new_task_id
from a2a_bridge.tasks.feed import Feeds
from a2a_bridge.tasks.pieces import agent_message
from a2a_bridge.tasks.record import State, StatusEvent, Task, after, timestamp
from a2a_bridge.tasks.run import TaskRun
from a2a_bridge.tasks.store import TaskStore
from accounts.authn import Identity
from agents.dispatch import Dispatcher
from agents.errors import AlreadyAsked, Denied, NotPublished, Unavailable
from agents.post import Join
from agents.types import Ask, SettledTurn, Surface, Target
from kit.ids import time_ordered, unguessable
from kit.jsonrpc import RpcError


class Exchanges:
    """Starts turns; an identical message that is still being answered joins its turn (docs/adr/0011)."""

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        tasks: TaskStore,
        feeds: Feeds,
        pushes: Pushes,
        reply_wait_s: float,
        process_id: str,
    ) -> None:
        self._dispatcher = dispatcher
        self._tasks = tasks
        self._feeds = feeds
        self._pushes = pushes
        self._reply_wait_s = reply_wait_s
        self._me = process_id
        self._open = OpenRuns()

    async def start(
        self, identity: Identity, agent: Target, send: Send, traceparent: str = "", claim: Claim | None = None
    ) -> TaskRun:
        """Ask, or join. `claim`: the send has an Idempotency-Key, and joins nothing but itself.

        Raises:
            AlreadyAsked: the same message is open in another process.
            NotPublished, Unavailable: nothing was sent.
        """
        key = key_of(identity, agent, send, claim)

        async def begin() -> TaskRun:
            run = self._run_of(self._new_task(identity, agent, send, claim), agent, send, claim)
            if send.push is not None:
                await self._keep_push(run, send.push)
            try:
                message_key = "" if claim else key[2].hex()
                ask = self._ask_of(run.task, agent, identity, send, traceparent, message_key, queues=True)
                await self._ask(run, key, ask, claim)
            except Exception:
                if send.push is not None:
                    await self._pushes.drop(run.task.id)
                raise
            return run

        return await self._open.once(key, begin)

    def answers(self, message: Join) -> bool:
        """Whether that message is answered here."""
        return self._open.find(_key_in(message)) is not None

    async def join(self, message: Join) -> None:
        """A message that may be answered here came again, see `Join`."""
        if (started := self._open.find(_key_in(message))) is None:
            return
        with suppress(RpcError, NotPublished, AlreadyAsked, Unavailable):  # it was not asked after all
            run = await asyncio.shield(started)
            run.outlives_followers = True
            if message.tells:
                await run.tell()

    def begun(self, identity: Identity, agent: Target, send: Send, claim: Claim) -> Task:
        """The task of an earlier send, as far as a repeated one says what it was."""
        return self._new_task(identity, agent, send, claim)

    async def go_on(
        self,
        identity: Identity,
        agent: Target,
        find: Callable[[], Awaitable[Task]],
        send: Send,
        traceparent: str = "",
        claim: Claim | None = None,
    ) -> TaskRun:
        """Start the next turn of a task that waits for its caller, or join the same message that did.

        Raises:
            RpcError: `find` raised it, another message was first, or the ask was refused: the task still waits.
            NotPublished, Unavailable: nothing was sent.
        """
        key = key_of(identity, agent, send, claim)

        async def begin() -> TaskRun:
            return await self._go_on(identity, agent, await find(), send, traceparent, claim, key)

        return await self._open.once(key, begin)

    async def _go_on(
        self,
        identity: Identity,
        agent: Target,
        task: Task,
        send: Send,
        traceparent: str,
        claim: Claim | None,
        key: Key,
    ) -> TaskRun:
        resumed = self._resumed(task, send, claim)
        working = StatusEvent(task.seq + 1, timestamp(), State.WORKING)
        begun = after(resumed, [working])
        if not await self._tasks.replace(begun, [working], expected_seq=task.seq):
            raise not_continuable(State.WORKING)
        run = self._run_of(begun, agent, send, claim)
        feed = await run.tell()
        feed.add(begun, [working])
        try:
            if send.push is not None:
                await self._keep_push(run, send.push)
            feed.has_pushes = await self._pushes.go_on(begun, [working], traceparent)
            await self._ask(run, key, self._ask_of(begun, agent, identity, send, traceparent, goes_on=True))
        except BaseException:
            await self._asks_still(task, begun)
            raise
        return run

    async def end(self, task: Task) -> bool:
        """End a task that waits for its caller; False when it does not wait any more."""
        message = agent_message(task, task.seq + 1, "canceled by its caller")
        event = StatusEvent(task.seq + 1, timestamp(), State.CANCELED, message)
        canceled = after(task, [event])
        if not await self._tasks.replace(canceled, [event], expected_seq=task.seq):
            return False
        await self._pushes.tell(canceled, [event])
        if feed := self._feeds.find(task.id):
            feed.add(canceled, [event])
        return True

    async def _keep_push(self, run: TaskRun, push: PushTarget) -> None:
        """The address that came with a message is kept before its agent is asked, and told from the start."""
        await self._pushes.keep(run.task, push, IN_SEND)
        (await run.tell()).has_pushes = True

    async def _ask(self, run: TaskRun, key: Key, ask: Ask, claim: Claim | None = None) -> None:
        """Ask; `key`: under which others may join, until it has ended. `claim`: let go when it was not asked."""

        async def keep_end(settled: SettledTurn) -> None:
            self._open.leave(key)
            if settled.refused is not None and claim is not None:
                await let_go(claim)
            await run.keep_end(settled)

        try:
            run.begin(await self._dispatcher.ask(ask, keep_end, run.writes))
        except Denied as denied:
            self._open.leave(key)
            text = denied_text(denied, ask.target.handle)
            if run.task.turns > 1:
                raise refused(text) from None
            message = agent_message(run.task, 1, text)
            await run.refuse(StatusEvent(1, timestamp(), State.FAILED, message))

    async def _asks_still(self, task: Task, begun: Task) -> None:
        """The follow-up was not asked: the task waits for its caller again, two events later."""
        event = StatusEvent(begun.seq + 1, timestamp(), task.state, task.message)
        feed = self._feeds.of(task)
        feed.is_fed = False
        restored = msgspec.structs.replace(task, seq=event.seq, updated_at=event.at)
        if await self._tasks.replace(restored, [event], expected_seq=begun.seq):
            await self._pushes.tell(restored, [event])
            feed.add(restored, [event])

    def _run_of(self, task: Task, agent: Target, send: Send, claim: Claim | None) -> TaskRun:
        return TaskRun(
            task,
            store=self._tasks,
            feeds=self._feeds,
            pushes=self._pushes,
            wait_s=self.wait_s(agent, send),
            keeps_plain=not send.takes_direct,
            plain_is_direct=send.plain_is_direct,
            joins_text=send.waits,
            keeper=claim,
        )

    def wait_s(self, agent: Target, send: Send) -> float:
        """How long the agent has: its own `wait_s` for callers who stream or come back for the answer."""
        return self._reply_wait_s if send.waits or agent.wait_s is None else agent.wait_s

    def _new_task(self, identity: Identity, agent: Target, send: Send, claim: Claim | None) -> Task:
        return Task(
            id=claim.task_id if claim else new_task_id(agent),
            caller_id=identity.user_id,
            handle=agent.handle,
            context_id=send.context_id or unguessable("context-"),
            chat_id=claim.chat_id if claim else time_ordered(),
            home=self._me,
            state=State.SUBMITTED,
            updated_at=timestamp(),
            history=(send.message,),
            metadata=send.metadata,
            text_type=agent.text_type,
        )

    def _resumed(self, task: Task, send: Send, claim: Claim | None) -> Task:
        said = (*task.history, *([task.message] if task.message else ()), send.message)
        chat_id = claim.chat_id if claim else time_ordered()
        return msgspec.structs.replace(
            task, history=said, message=None, chat_id=chat_id, home=self._me, turns=task.turns + 1
        )

    def _ask_of(
        self,
        task: Task,
        agent: Target,
        identity: Identity,
        send: Send,
        traceparent: str,
        message_key: str = "",
        *,
        queues: bool = False,
        goes_on: bool = False,
    ) -> Ask:
        return Ask(
            chat_id=task.chat_id,
            target=agent,
            caller_id=identity.user_id,
            caller_login=identity.login,
            surface=Surface.A2A,
            question=send.question,
            wait_s=self.wait_s(agent, send),
            task_id=task.id,
            context_id=task.context_id,
            message_id=send.message.id,
            parts=send.parts,
            traceparent=traceparent,
            message_key=message_key,
            queues=queues,
            goes_on=goes_on,
        )


def _key_in(message: Join) -> Key:
    return message.caller_id, message.session_id, bytes.fromhex(message.message_key)
