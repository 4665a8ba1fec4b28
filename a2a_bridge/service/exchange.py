"""Starts the first and further turns of tasks, finds the turns of this process, and cancels waiting tasks."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError
from msgspec.structs import replace

from a2a_bridge.service import follow_ups
from a2a_bridge.service.calls import Call, digest_of
from a2a_bridge.service.pushes import IN_SEND, Pushes
from a2a_bridge.service.repeats import JoinedTask, KeyClaim, release_key
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.pieces import agent_message, waiting_again
from a2a_bridge.service.tasks.store import StoresById, new_task_id
from a2a_bridge.wire.errors import denied_text, refused
from a2a_bridge.wire.requests import PushTarget, Send
from a2a_bridge.wire.task import State, StatusEvent, Task, after, timestamp
from agents.core.dispatch import Dispatcher, PreparedAsk
from agents.core.errors import Denied
from agents.core.post import JoinTurn, LeaveTurn, Post
from agents.core.types import Ask, AskTarget, LookUpResult, SettledTurn
from agents.core.waiting import RunningTurn
from agents.models import FollowUp
from agents.models.choices import TurnFailure
from kit.async_db import db_call
from kit.ids import time_ordered, unguessable
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

APPEARS_EVERY_S = 0.05
APPEARS_LOOKS = 60  # 3 s: as long as the process that sent a `JoinTurn` looks for the task


class HasFollowUps(Exception):
    """The agent has follow-ups, perhaps in the context of this message for its task to show.

    The agent was not asked.
    """


class Exchanges:
    """Starts turns, and keeps those of this process by chat id until they have ended."""

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        tasks: StoresById,
        feeds: Feeds,
        pushes: Pushes,
        post: Post,
        reply_wait_s: float,
        process_id: str,
    ) -> None:
        self._dispatcher = dispatcher
        self._tasks = tasks
        self._feeds = feeds
        self._pushes = pushes
        self._post = post
        self._leaving = TaskSet()
        self._reply_wait_s = reply_wait_s
        self._me = process_id
        self._runs: dict[str, TaskRun] = {}

    @property
    def home(self) -> str:
        """The process whose turns these are."""
        return self._me

    def find(self, chat_id: str) -> TaskRun | None:
        """The turn of that id, if it runs or waits here.

        The run is there as soon as another ask can learn of it: the ledger's answers reach the loop in their
        order.
        """
        return self._runs.get(chat_id)

    async def join(self, message: JoinTurn) -> None:
        """Handle a repeated message whose turn runs here, see `JoinTurn`.

        A request may arrive before the ledger's result reached this loop, and then waits for that result.
        """
        for _ in range(APPEARS_LOOKS):
            if run := self.find(message.chat_id):
                if message.follower:
                    run.followers_elsewhere.add(message.follower)
                else:
                    run.outlives_followers = True
                if message.tells:
                    await run.start_feed()
                return
            await asyncio.sleep(APPEARS_EVERY_S)

    async def keep(self, chat_id: str, home: str) -> None:
        """Let a turn, of any process, go on when the requests that wait for it leave."""
        same = JoinTurn(chat_id, tells=False)
        await (self.join(same) if home == self._me else self._post.send(home, same))

    def leave(self, run: TaskRun, *, is_answered: bool, cancels: bool) -> None:
        """A request of this process stops waiting for a turn.

        The last request to leave cancels the turn, if each request that left had canceled (`cancels`) and none was
        answered with the task while it ran (`is_answered`). The last to leave a queued ask need not cancel.
        """
        run.followers -= 1
        if is_answered or not (cancels or run.is_in_queue):
            run.outlives_followers = True
        else:
            self._cancel_unfollowed(run)

    def leave_elsewhere(self, joined: JoinedTask) -> None:
        """A request of this process was canceled that had joined a turn of another process."""
        if joined.follower:
            message = LeaveTurn(joined.task.chat_id, joined.follower)
            self._leaving.start(self._post.send(joined.task.home, message), name=f"leave {message.chat_id}")

    def take_leave(self, message: LeaveTurn) -> None:
        """Handle the end of a request of another process, see `LeaveTurn`."""
        if (run := self.find(message.chat_id)) and message.follower in run.followers_elsewhere:
            run.followers_elsewhere.remove(message.follower)
            self._cancel_unfollowed(run)

    def _cancel_unfollowed(self, run: TaskRun) -> None:
        has_pushes = run.feed is not None and run.feed.has_pushes
        if not (run.followers or run.followers_elsewhere or run.outlives_followers or has_pushes):
            self._dispatcher.cancel(run.opening.chat_id)

    async def start(self, call: Call, send: Send, claim: KeyClaim | None = None) -> TaskRun:
        """Begin a task. `claim`: the send has an Idempotency-Key, and joins nothing but itself.

        The task gets the follow-ups in its context that no ask was given yet, unless its own ask is refused.

        Raises:
            AlreadyAsked: the same message is being answered.
            NotPublished, Unavailable: nothing was sent.
        """
        earlier = await self._find_follow_ups(call, send)
        run, asked = self._prepared(call, send, claim, earlier)
        push = send.push
        if push is not None:
            await self._keep_push(run, push)
        run.follow_ups = [one.pk for one in earlier]
        try:
            return await self._started([run], self._dispatcher.ask(*asked))
        except Exception:  # nothing was asked: the same message joins another task
            if push is not None:
                await self._pushes.drop(run.task.id)
                await run.store.drop(run.task)
            raise

    def start_found(
        self, digest: str | None, handle: str | None, enter: Callable[[LookUpResult], Call]
    ) -> Coroutine[Any, Any, TaskRun]:
        """Start a turn as `start` does, for a caller and an agent that the same trip to the ledger looks up.

        `enter` makes the call from what was found; the ledger's thread calls it. The exceptions of the lookup are
        raised here.

        Raises:
            HasFollowUps: nothing was asked; call `start` instead.
        """
        runs: list[TaskRun] = []

        def make(found: LookUpResult) -> PreparedAsk:
            call = enter(found)
            assert isinstance(call.request, Send)  # noqa: S101  for the type checker: it is a plain send
            if call.request.context_id and call.caller.agent.has_follow_ups:
                raise HasFollowUps
            run, asked = self._prepared(call, call.request)
            runs.append(run)
            return asked

        return self._started(runs, self._dispatcher.ask_found(digest, handle, make))

    async def continue_task(
        self, call: Call, send: Send, task: Task, claim: KeyClaim | None = None
    ) -> TaskRun | None:
        """Start the next turn of a task that waits for its caller; None when another message came first.

        Raises:
            RpcError: the ask was refused: the task still waits.
            NotPublished, Unavailable: nothing was sent.
        """
        chat_id = claim.chat_id if claim else time_ordered()
        said = (*task.history, *([task.message] if task.message else ()), send.message)
        resumed = replace(task, history=said, message=None, chat_id=chat_id, home=self._me, turns=task.turns + 1)
        working = StatusEvent(task.seq + 1, timestamp(), State.WORKING)
        begun = after(resumed, [working])
        if not await self._tasks.of(task.id).replace(begun, [working], expected_seq=task.seq):
            return None
        run, asked = self._with_ask(begun, call, send, claim, before=task)
        feed = await run.start_feed()
        feed.add(begun, [working])
        try:
            if send.push is not None:
                await self._keep_push(run, send.push)
            feed.has_pushes = await self._pushes.continue_task(begun, [working], call.traceparent)
            return await self._started([run], self._dispatcher.ask(*asked))
        except BaseException:
            await self._asks_still(task, begun)
            raise

    async def end(self, task: Task) -> bool:
        """End a task that waits for its caller; False when it does not wait any more."""
        message = agent_message(task, task.seq + 1, "canceled by its caller", TurnFailure.CANCELED)
        event = StatusEvent(task.seq + 1, timestamp(), State.CANCELED, message)
        canceled = after(task, [event])
        if not await self._tasks.of(task.id).replace(canceled, [event], expected_seq=task.seq):
            return False
        await self._pushes.queue_events(canceled, [event])
        if feed := self._feeds.find(task.id):
            feed.add(canceled, [event])
        return True

    async def _keep_push(self, run: TaskRun, push: PushTarget) -> None:
        """The address that came with a message is kept before its agent is asked, and told from the start."""
        await self._pushes.keep(run.task, push, IN_SEND)
        (await run.start_feed()).has_pushes = True

    async def _started(self, runs: Sequence[TaskRun], asking: Coroutine[Any, Any, RunningTurn]) -> TaskRun:
        """The one run, once its ask is decided. Until then `runs` may be empty."""
        try:
            running = await asking
        except Denied as denied:
            run = runs[0]
            text = denied_text(denied, run.task.handle)
            if run.task.turns > 1:
                raise refused(text) from None
            run.task = replace(run.task, artifacts=())  # the next ask is given the follow-ups
            event = StatusEvent(1, timestamp(), State.FAILED, agent_message(run.task, 1, text, denied.reason))
            await run.refuse(event, denied)
            return run
        run = self._runs[running.turn.ask.chat_id] = runs[0]
        run.begin(running)
        return run

    async def _keep_end(self, run: TaskRun, claim: KeyClaim | None, settled: SettledTurn) -> None:
        self._runs.pop(run.opening.chat_id, None)
        try:  # else the transaction that settled the turn has released it
            if claim is not None and settled.is_unsent and not settled.has_extra_writes:
                await release_key(claim)
        finally:
            await run.keep_end(settled)
        if run.follow_ups and settled.refused is None and not settled.is_unsent:
            try:
                await db_call(follow_ups.mark_shown)(run.follow_ups)
            except (DatabaseError, InterfaceError):  # the next task shows them again
                logger.exception("follow_ups.not_marked", extra={"chat_id": run.task.chat_id})

    async def _asks_still(self, task: Task, begun: Task) -> None:
        """The follow-up was not asked: the task waits for its caller again, two events later."""
        restored, event = waiting_again(task, begun.seq, timestamp())
        feed = self._feeds.of(task)
        feed.is_fed = False
        if await self._tasks.of(task.id).replace(restored, [event], expected_seq=begun.seq):
            await self._pushes.queue_events(restored, [event])
            feed.add(restored, [event])

    def new_task(self, call: Call, send: Send, claim: KeyClaim | None = None) -> Task:
        """The task that a message begins; or began, as far as a repeated one says what it was."""
        agent = call.caller.agent
        return Task(
            id=claim.task_id if claim else new_task_id(agent),
            caller_id=call.caller.identity.user_id,
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

    def wait_s(self, agent: AskTarget, send: Send) -> float:
        """The seconds that the agent has: its own `wait_s` for callers who stream, come back, or wait as long as
        that.
        """
        takes_long = send.has_agents_time or not send.waits
        return agent.wait_s if takes_long and agent.wait_s is not None else self._reply_wait_s

    async def _find_follow_ups(self, call: Call, send: Send) -> Sequence[FollowUp]:
        agent = call.caller.agent
        if not send.context_id or not agent.has_follow_ups or agent.agent_id is None:
            return ()
        caller_id = call.caller.identity.user_id
        found = await db_call(follow_ups.find_unshown)(agent.agent_id, caller_id, send.context_id)
        for one in found:  # an answer that was a message left no task
            if await self._tasks.of(one.followed_id).find(one.followed_id, caller_id=caller_id) is None:
                one.followed_id = ""
        return found

    def _prepared(
        self, call: Call, send: Send, claim: KeyClaim | None = None, earlier: Sequence[FollowUp] = ()
    ) -> tuple[TaskRun, PreparedAsk]:
        message_key = "" if claim else digest_of(send).hex()
        task = self.new_task(call, send, claim)
        if earlier:
            task = follow_ups.add_follow_ups(task, earlier)
        return self._with_ask(task, call, send, claim, message_key=message_key, queues=True)

    def _with_ask(
        self,
        task: Task,
        call: Call,
        send: Send,
        claim: KeyClaim | None,
        *,
        message_key: str = "",
        queues: bool = False,
        before: Task | None = None,
    ) -> tuple[TaskRun, PreparedAsk]:
        """A task with its next turn, and the ask of that turn. `before`: see `TaskRun`."""
        identity, agent = call.caller.identity, call.caller.agent
        wait_s = self.wait_s(agent, send)
        run = TaskRun(
            opening=task,
            store=self._tasks.of(task.id),
            feeds=self._feeds,
            pushes=self._pushes,
            wait_s=wait_s,
            send=send,
            keeper=claim,
            before=before,
        )
        ask = Ask(
            chat_id=task.chat_id,
            target=agent,
            caller_id=identity.user_id,
            caller_login=identity.login,
            surface=call.dialect.surface,
            question=send.question,
            wait_s=wait_s,
            task_id=task.id,
            context_id=task.context_id,
            message_id=send.message.id,
            parts=send.parts,
            traceparent=call.traceparent,
            message_key=message_key,
            queues=queues,
            continues_task=before is not None,
        )
        return run, PreparedAsk(ask, partial(self._keep_end, run, claim), run.writes)
