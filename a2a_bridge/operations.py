"""What every operation does, whichever dialect and binding it came by."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from a2a_bridge.dialects.dialect import Dialect, Operation
from a2a_bridge.dialects.reading import invalid
from a2a_bridge.errors import (
    not_cancelable,
    not_continuable,
    not_followable,
    other_context,
    out_of_reach,
    task_not_found,
)
from a2a_bridge.exchange import Exchanges, digest_of
from a2a_bridge.idempotency import Claim, Repeat, check, let_go, take
from a2a_bridge.joining import Joined, join
from a2a_bridge.pushes.pushes import IN_SEND, Pushes
from a2a_bridge.requests import (
    Cancel,
    CreatePush,
    Get,
    List,
    ListPush,
    NamePush,
    Request,
    Send,
    ShowCard,
    Subscribe,
)
from a2a_bridge.streams import Frame, Streaming
from a2a_bridge.tasks.feed import Feeds
from a2a_bridge.tasks.pieces import reply_message
from a2a_bridge.tasks.reader import LOOK_EVERY_S, TaskReader
from a2a_bridge.tasks.record import Message, Role, Task
from a2a_bridge.tasks.run import TaskRun
from a2a_bridge.tasks.store import TaskQuery, TaskStore
from accounts.authn import Identity
from agents.dispatch import Dispatcher
from agents.errors import AlreadyAsked, NotPublished
from agents.pieces import Json, Part
from agents.post import Cancel as CancelMessage
from agents.post import Post
from agents.types import Target
from kit.async_db import db_call
from kit.ids import unguessable

MAX_TASK_ID_CHARS = 64
CANCEL_WITHIN_S = 10.0
NOTHING_TO_ASK = "The request contained no supported text or data parts."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and which agent's address they call."""

    identity: Identity
    agent: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What operations work with. `extended_card`: of an agent by its id; reads the database."""

    exchanges: Exchanges
    reader: TaskReader
    tasks: TaskStore
    feeds: Feeds
    pushes: Pushes
    dispatcher: Dispatcher
    post: Post
    extended_card: Callable[[int], Json | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that is sound. `seen`: the id of the last frame a returning client saw (Last-Event-ID).

    `key`: its Idempotency-Key.
    """

    caller: Caller
    dialect: Dialect
    operation: Operation
    request: Request
    seen: str = ""
    key: str = ""
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """An answer that is there."""

    result: object


@dataclass(frozen=True, slots=True)
class Waiting:
    """An answer that comes with the end of a turn."""

    run: TaskRun | Repeat | Joined
    call: Call

    @property
    def result(self) -> Json:
        """The answer, once the turn has ended."""
        dialect, request, run = self.call.dialect, self.call.request, self.run
        if isinstance(request, Send) and request.takes_direct and not run.is_promoted:
            return dialect.direct(run.task.context_id, reply_message(run.task))
        return dialect.sent(run.task, request)


@dataclass(frozen=True, slots=True)
class Told:
    """An answer frame by frame; None where nothing was told for a while."""

    frames: AsyncIterator[Frame | None]


Outcome = Done | Waiting | Told


@dataclass(frozen=True, slots=True)
class Operations:
    """Runs calls. Everything may raise RpcError, NotPublished and Unavailable."""

    services: Services

    async def run(self, call: Call) -> Outcome:
        """Do what is asked."""
        match call.request:
            case Send() as send:
                return await self._send(call, send)
            case Get() as get:
                return Done(call.dialect.task(await self._find(call, get.task_id), get.history_length))
            case List() as wanted:
                return Done(await self._page(call, wanted))
            case Cancel() as cancel:
                return Done(call.dialect.task(await self._cancel(call, cancel.task_id), None))
            case Subscribe() as subscribe:
                return await self._subscribe(call, subscribe)
            case CreatePush() as create:
                return Done(await self._create_push(call, create))
            case NamePush() as named:
                return Done(await self._one_push(call, named))
            case ListPush() as page:
                return Done(await self._list_pushes(call, page))
            case ShowCard():
                return Done(await self._show_card(call.caller.agent))

    async def _send(self, call: Call, send: Send) -> Outcome:
        streaming = Streaming(call.dialect, send, self.services.reader)
        if call.seen and call.operation is Operation.STREAM:
            return await self._again(call, streaming)
        if not send.question:
            return await self._nothing(call, send, streaming)
        try:
            run = await self._keyed(call, send) if call.key else await self._start(call, send)
        except AlreadyAsked as same:
            return await self._joined(call, send, same, streaming)
        if isinstance(run, Repeat):
            return await self._repeated(call, send, run, streaming)
        if call.operation is Operation.STREAM:
            return Told(streaming.of_direct(run) if send.takes_direct else streaming.of_turn(run))
        if send.waits or run.running is None:
            return Waiting(run, call)
        await run.tell()
        return Done(call.dialect.sent(run.opening, send))

    async def _joined(self, call: Call, send: Send, same: AlreadyAsked, streaming: Streaming) -> Outcome:
        """The answer that another process waits for; when it has just come there, a new question."""
        services = self.services
        joined = await join(same, call.caller.identity.user_id, services.post, services.reader)
        if joined is None:
            return await self._send(call, send)
        if call.operation is not Operation.STREAM:
            return Waiting(joined, call) if send.waits else Done(call.dialect.sent(joined.task, send))
        return Told(streaming.of_repeat(joined) if send.takes_direct else streaming.of_task(joined.feed))

    async def _nothing(self, call: Call, send: Send, streaming: Streaming) -> Outcome:
        """The hub's own answer to a message without anything an agent could take; nobody is asked."""
        task = await self._continuable(call, send) if send.task_id else None
        context_id = task.context_id if task else send.context_id or unguessable("context-")
        said = Message(unguessable("msg-"), Role.AGENT, (Part(text=NOTHING_TO_ASK),))
        shown = call.dialect.direct(context_id, said)
        return Told(streaming.of_message(shown)) if call.operation is Operation.STREAM else Done(shown)

    async def _keyed(self, call: Call, send: Send) -> TaskRun | Repeat:
        """The turn of a key, or what it was; a send that began nothing leaves its key free."""
        identity, agent = call.caller.identity, call.caller.agent
        body = digest_of(send)
        claim = await take(identity.user_id, agent.handle, check(call.key), body, task_id=send.task_id)
        if not claim.is_new:
            wait_s = self.services.exchanges.wait_s(agent, send)
            return Repeat(claim, self.services.exchanges.begun(identity, agent, send, claim), wait_s=wait_s)
        try:
            run = await self._start(call, send, claim)
        except BaseException:
            await let_go(claim)
            raise
        if run.running is None:
            await let_go(claim)
        return run

    async def _repeated(self, call: Call, send: Send, repeat: Repeat, streaming: Streaming) -> Outcome:
        """A stream shows the task as it is, and then what happens; else the answer is the first one's."""
        if call.operation is not Operation.STREAM and send.waits:
            return Waiting(repeat, call)
        if not await repeat.ended(0):
            task = await self.services.reader.find(repeat.task.id, call.caller.identity.user_id)
            if task is not None and call.operation is Operation.STREAM:
                return Told(streaming.of_task(await self.services.reader.follow(task)))
            if task is not None:
                return Done(call.dialect.sent(task, send))
        if call.operation is Operation.STREAM:
            return Told(streaming.of_repeat(repeat))
        return Done(call.dialect.sent(repeat.task, send))

    async def _start(self, call: Call, send: Send, claim: Claim | None = None) -> TaskRun:
        exchanges, caller = self.services.exchanges, call.caller
        if send.push is not None:
            await self.services.pushes.check(send.push, IN_SEND)
        if not send.task_id:
            return await exchanges.start(caller.identity, caller.agent, send, call.traceparent, claim)
        task = await self._continuable(call, send)
        return await exchanges.go_on(caller.identity, caller.agent, task, send, call.traceparent, claim)

    async def _continuable(self, call: Call, send: Send) -> Task:
        """The task that a message goes on with."""
        task = await self._find(call, send.task_id)
        if send.context_id and send.context_id != task.context_id:
            raise other_context()
        if not task.is_interrupted:
            raise not_continuable(task.state)
        return task

    async def _find(self, call: Call, task_id: str) -> Task:
        """A task of the caller's with this agent; the same error for absent, expired and foreign."""
        if not task_id or len(task_id) > MAX_TASK_ID_CHARS or not task_id.isprintable():
            raise task_not_found()
        task = await self.services.reader.find(task_id, call.caller.identity.user_id)
        if task is None or task.handle != call.caller.agent.handle:
            raise task_not_found()
        return task

    async def _page(self, call: Call, wanted: List) -> Json:
        query = TaskQuery(
            caller_id=call.caller.identity.user_id,
            handle=call.caller.agent.handle,
            context_id=wanted.context_id,
            state=wanted.state,
            since=wanted.since,
            before=_position(wanted.page_token) if wanted.page_token else None,
            limit=wanted.page_size,
        )
        page = await self.services.tasks.page(query)
        token = "" if page.is_last or not page.tasks else _token(page.tasks[-1])
        return call.dialect.page(page, wanted, token)

    async def _cancel(self, call: Call, task_id: str) -> Task:
        """The task once it is canceled. It is told to stop at once, and shown canceled when that is durable."""
        task = await self._find(call, task_id)
        if task.is_interrupted and not await self.services.exchanges.end(task):
            task = await self._find(call, task_id)
        if task.is_terminal:
            if call.dialect.passes_ended:
                return task
            raise not_cancelable(task.state)
        if task.is_open:
            await self._stop(task)
        ended = await self._find(call, task_id)
        if not call.dialect.passes_ended and ended.state != "canceled":
            raise not_cancelable(ended.state)
        return ended

    async def _stop(self, task: Task) -> None:
        services = self.services
        if not services.dispatcher.cancel(task.chat_id):
            await services.post.send(task.home, CancelMessage(task.chat_id))
        feed = await services.reader.follow(task)
        try:
            async with asyncio.timeout(CANCEL_WITHIN_S):
                while feed.task.is_open and await services.reader.refresh(feed):
                    await feed.news(feed.task.seq, LOOK_EVERY_S)
        except TimeoutError:
            raise out_of_reach(task.state) from None

    async def _subscribe(self, call: Call, subscribe: Subscribe) -> Outcome:
        streaming = Streaming(call.dialect, subscribe, self.services.reader)
        if call.seen:
            return await self._again(call, streaming, subscribe.task_id)
        task = await self._find(call, subscribe.task_id)
        if task.is_terminal and not call.dialect.passes_ended:
            raise not_followable(task.state)
        if task.is_terminal or (task.is_interrupted and call.dialect.passes_ended):
            return Told(streaming.of_snapshot(task))
        return Told(streaming.of_task(await self.services.reader.follow(task)))

    async def _create_push(self, call: Call, create: CreatePush) -> Json:
        task = await self._find(call, create.task_id)
        await self.services.pushes.check(create.target)
        return call.dialect.push(task.id, await self.services.pushes.add(task, create.target))

    async def _one_push(self, call: Call, named: NamePush) -> Json:
        """Shown, or forgotten; to forget what is not there is fine."""
        task = await self._find(call, named.task_id)
        if call.operation is Operation.DELETE_PUSH:
            await self.services.pushes.drop(task.id, named.config_id)
            return {}
        return call.dialect.push(task.id, await self.services.pushes.find(named))

    async def _list_pushes(self, call: Call, wanted: ListPush) -> object:
        task = await self._find(call, wanted.task_id)
        return call.dialect.pushes(task.id, *await self.services.pushes.page(wanted))

    async def _show_card(self, agent: Target) -> Json:
        card = await db_call(self.services.extended_card)(agent.agent_id) if agent.agent_id else None
        if card is None:
            raise NotPublished
        return card

    async def _again(self, call: Call, streaming: Streaming, task_id: str = "") -> Outcome:
        """Attach a client that lost its stream; nothing is asked again."""
        seen_id, _, number = call.seen.rpartition(".")
        if not number.isdecimal() or len(number) > 9 or task_id not in ("", seen_id):
            raise task_not_found()
        task, seq = await self._find(call, seen_id), int(number)
        feed = await self.services.reader.follow(task)
        missed = feed.since(seq) if seq <= feed.task.seq else None
        if missed is None:
            missed = await self.services.tasks.events_after(task, seq)
        return Told(streaming.again(feed, missed, seq))


def _token(task: Task) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((task.updated_at, task.id))).decode("ascii")


def _position(token: str) -> tuple[str, str]:
    try:
        raw = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
        at, task_id = msgspec.json.decode(raw, type=tuple[str, str])
        is_ours = datetime.fromisoformat(at).tzinfo is UTC and task_id.isascii() and task_id.isprintable()
    except (ValueError, OverflowError, msgspec.DecodeError):
        is_ours = False
    if not is_ours:
        raise invalid("pageToken", "pageToken: not one of this hub")
    return at, task_id
