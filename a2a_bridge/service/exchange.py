"""Starts the first and further turns of tasks, finds the turns of this process, and cancels waiting tasks."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from a2a_bridge.service import follow_ups
from a2a_bridge.service.calls import Call, digest_of
from a2a_bridge.service.pushes import IN_SEND, Pushes
from a2a_bridge.service.repeats import JoinedTask, KeyClaim
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.pieces import agent_message, waiting_again
from a2a_bridge.service.tasks.store import StoresById, new_task_id
from a2a_bridge.wire.errors import denied_text, refused
from a2a_bridge.wire.requests import PushTarget, Send
from a2a_bridge.wire.task import State, StatusEvent, Task, after, timestamp
from agents.core.dispatch import Dispatcher
from agents.core.errors import Denied, RateLimited
from agents.core.post import JoinTurn, LeaveTurn, Post
from agents.core.types import Ask
from agents.models import FollowUp
from agents.models.choices import TurnFailure
from kit.asgi import REFUSED_AFTER_S
from kit.async_db import db_call
from kit.ids import time_ordered, unguessable
from kit.tasks import TaskSet

APPEARS_EVERY_S = 0.05
APPEARS_LOOKS = 60  # 3 s: as long as the process that sent a `JoinTurn` looks for the task


class Exchanges:
    """Starts the turns of tasks, and knows which requests wait for those of this process."""

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

    @property
    def home(self) -> str:
        """The process whose turns these are."""
        return self._me

    def find(self, chat_id: str) -> TaskRun | None:
        """The turn of a task by its chat id, if it runs or waits here."""
        run = self._dispatcher.find(chat_id)
        return run if isinstance(run, TaskRun) else None

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
        """Record that a request of this process stops waiting for a turn.

        The last request to leave cancels the turn, if each request that left had canceled (`cancels`) and none was
        answered with the task while it ran (`is_answered`). The last to leave a queued ask need not cancel.
        """
        run.followers -= 1
        if is_answered or not (cancels or not run.is_admitted):
            run.outlives_followers = True
        else:
            self._cancel_unfollowed(run)

    def leave_elsewhere(self, joined: JoinedTask) -> None:
        """Report a canceled request of this process to the other process whose turn the request had joined."""
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
        run = self.new_run(call, send, claim, earlier=await self._find_follow_ups(call, send))
        try:
            if send.push is not None:
                await self._keep_push(run, send.push)
            try:
                return await self._dispatcher.ask(run)
            except Denied as denied:
                await _slow_down(denied)
                await run.refuse(denied)
                return run
        except Exception:  # the agent was not asked: the same message, sent again, begins a new task
            if send.push is not None:
                await self._pushes.drop(run.task.id)
                await run.store.drop(run.task)
            raise

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
        run = self.new_run(call, send, claim, begun=begun, before=task)
        feed = await run.start_feed()
        feed.add(begun, [working])
        try:
            if send.push is not None:
                await self._keep_push(run, send.push)
            feed.has_pushes = await self._pushes.continue_task(begun, [working], call.traceparent)
            return await self._dispatcher.ask(run)
        except BaseException as failure:
            await self._asks_still(task, begun)
            if isinstance(failure, Denied):
                await _slow_down(failure)
                raise refused(denied_text(failure, task.handle)) from None
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
        """Keep the push address of a message before its agent is asked, so that the address gets every event."""
        await self._pushes.keep(run.task, push, IN_SEND)
        (await run.start_feed()).has_pushes = True

    async def _asks_still(self, task: Task, begun: Task) -> None:
        """Set the task back to waiting for its caller, two events later: the agent was not asked."""
        restored, event = waiting_again(task, begun.seq, timestamp())
        feed = self._feeds.of(task)
        feed.is_fed = False
        if await self._tasks.of(task.id).replace(restored, [event], expected_seq=begun.seq):
            await self._pushes.queue_events(restored, [event])
            feed.add(restored, [event])

    async def _find_follow_ups(self, call: Call, send: Send) -> Sequence[FollowUp]:
        agent = call.caller.agent
        if not send.context_id or not agent.has_follow_ups or agent.agent_id is None:
            return ()
        caller_id = call.caller.identity.user_id
        found = await db_call(follow_ups.find_unshown)(agent.agent_id, caller_id, send.context_id)
        for one in found:  # a turn that was answered with a message has no task
            if await self._tasks.of(one.followed_id).find(one.followed_id, caller_id=caller_id) is None:
                one.followed_id = ""
        return found

    def new_run(
        self,
        call: Call,
        send: Send,
        claim: KeyClaim | None = None,
        *,
        begun: Task | None = None,
        before: Task | None = None,
        earlier: Sequence[FollowUp] = (),
    ) -> TaskRun:
        """The turn of a message, before its ask is decided; or of a repeated one, as far as that says what it was.

        `begun`, `before`: the task with this message, and as it waited for the message; without them the task is
        new, and has the `earlier` follow-ups.
        """
        identity, agent = call.caller.identity, call.caller.agent
        takes_long = send.has_agents_time or not send.waits  # the caller streams, comes back, or waits as long
        wait_s = agent.wait_s if takes_long and agent.wait_s is not None else self._reply_wait_s
        task = begun or self._new_task(call, send, claim)
        if earlier:
            task = follow_ups.add_follow_ups(task, earlier)
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
            files=send.files,
            traceparent=call.traceparent,
            message_key="" if claim or begun else digest_of(send).hex(),
            queues=begun is None,
            continues_task=begun is not None,
        )
        return TaskRun(
            ask,
            task,
            send,
            store=self._tasks.of(task.id),
            feeds=self._feeds,
            pushes=self._pushes,
            claim=claim,
            before=before,
            follow_ups=earlier,
        )

    def _new_task(self, call: Call, send: Send, claim: KeyClaim | None) -> Task:
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


async def _slow_down(denied: Denied) -> None:
    """Wait before an ask that is refused by the rate is answered; see `kit.asgi.slow_down`."""
    if isinstance(denied, RateLimited):
        await asyncio.sleep(REFUSED_AFTER_S)
