"""A call on its way through the bridge: who makes it, what serves it, and in which form its answer comes."""

from collections.abc import AsyncIterator, Callable
from typing import Protocol

import msgspec

from a2a_bridge.dialects.dialect import Dialect, Operation
from a2a_bridge.errors import (
    agent_not_found,
    foreign_origin,
    out_of_scope,
    task_not_found,
    too_large,
    unauthenticated,
)
from a2a_bridge.exchange import Exchanges
from a2a_bridge.pushes.pushes import Pushes
from a2a_bridge.repeats import Joined, Repeat
from a2a_bridge.requests import Request, Send
from a2a_bridge.streams import Frame, Streaming
from a2a_bridge.tasks.feed import Feeds
from a2a_bridge.tasks.pieces import answer_message
from a2a_bridge.tasks.reader import TaskReader
from a2a_bridge.tasks.record import Task
from a2a_bridge.tasks.run import TaskRun
from a2a_bridge.tasks.store import TaskStore
from accounts.authn import CALLER_KINDS, Identity, TokenScope
from agents.dispatch import Dispatcher
from agents.pieces import Json
from agents.post import Post
from agents.types import Found, Target
from kit.asgi import HttpRequest
from kit.jsonrpc import RpcError

HYBRID = "hybrid"
MAX_TASK_ID_CHARS = 64


class Caller(msgspec.Struct, frozen=True):
    """Who calls, and which agent's address they call."""

    identity: Identity
    agent: Target


class Wire(Protocol):
    """How a binding wraps what a dialect says.

    `media_type`: of an answer that is no stream. `allow`: the HTTP methods its address takes. `streams_errors`: a
    refusal on HTTP 200 is a stream.
    """

    media_type: bytes
    allow: bytes
    streams_errors: bool

    def result(self, result: object) -> bytes:
        """A whole answer."""

    def frame(self, shown: Json) -> bytes:
        """A frame of a stream."""

    def error(self, error: RpcError) -> bytes:
        """A refusal."""

    def status(self, error: RpcError) -> int:
        """The HTTP status a refusal travels on."""


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What operations work with. `extended_card`: of an agent for a user, by their ids; reads the database."""

    exchanges: Exchanges
    reader: TaskReader
    tasks: TaskStore
    feeds: Feeds
    pushes: Pushes
    dispatcher: Dispatcher
    post: Post
    extended_card: Callable[[int, int], Json | None]


class Call(msgspec.Struct, frozen=True, kw_only=True):
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


class Incoming(msgspec.Struct, kw_only=True):
    """A request that was read, before its caller and its agent are looked up.

    `digest`: of its token. `is_foreign`: the token came as a cookie from another site's page. `wrong`: what is
    wrong with the request whatever it says. `error`: why what it says is no call; else `dialect`, `operation` and
    `request` are set. `wire`: how it is answered, once its caller may call. `call`: what it became.
    """

    handle: str | None
    digest: str | None
    wire: Wire
    is_foreign: bool = False
    body_bytes: int = 0
    wrong: RpcError | None = None
    error: RpcError | None = None
    dialect: Dialect | None = None
    operation: Operation | None = None
    request: Request | None = None
    seen: str = ""
    key: str = ""
    traceparent: str = ""
    call: Call | None = None

    @property
    def is_readable(self) -> bool:
        """Whether what it says may matter; else `check` refuses it, whatever is found."""
        return self.wrong is None and self.digest is not None

    @property
    def is_plain_send(self) -> bool:
        """Whether it is a send that needs nothing but its caller and its agent to become an ask."""
        send = self.request
        if not isinstance(send, Send) or self.key or self.seen:
            return False
        return bool(send.question) and not (send.task_id or send.approves or send.push)

    def take(self, http: HttpRequest, dialect: Dialect, operation: Operation, request: Request) -> None:
        """This is what it says, besides its headers."""
        self.dialect, self.operation, self.request = dialect, operation, request
        self.seen = http.headers.get("last-event-id", "") if dialect.replays else ""
        self.key = http.headers.get("idempotency-key", "")
        self.traceparent = http.traceparent

    def check(self, found: Found) -> Caller:
        """Who calls.

        Raises:
            RpcError: of what is wrong the first: agent, HTTP method, media type, size, caller.
        """
        identity, agent = found.identity, found.agent
        if agent is None:
            raise agent_not_found()
        if self.wrong is not None:
            raise self.wrong
        if agent.max_body_bytes is not None and self.body_bytes > agent.max_body_bytes:
            raise too_large(agent.max_body_bytes)
        if self.digest is None or identity is None or identity.kind not in CALLER_KINDS:
            raise unauthenticated()
        if self.is_foreign:
            raise foreign_origin()
        if not identity.may(TokenScope.ASK, agent=agent.handle):
            raise out_of_scope()
        return Caller(identity, agent)

    def enter(self, caller: Caller) -> Call:
        """The call it makes; without a direct reply where the agent always makes tasks.

        Raises:
            RpcError: what it says is none.
        """
        if self.error is not None:
            raise self.error
        request, dialect, operation = self.request, self.dialect, self.operation
        if request is None or dialect is None or operation is None:
            raise RuntimeError("a request that was not read")
        if isinstance(request, Send) and request.takes_direct and caller.agent.style != HYBRID:
            request = msgspec.structs.replace(request, takes_direct=False)
        self.call = Call(
            caller=caller,
            dialect=dialect,
            operation=operation,
            request=request,
            seen=self.seen,
            key=self.key,
            traceparent=self.traceparent,
        )
        return self.call


class Done(msgspec.Struct, frozen=True):
    """An answer that is complete."""

    result: object


class Waiting(msgspec.Struct, frozen=True):
    """An answer that comes with the end of a turn."""

    run: TaskRun | Repeat | Joined
    call: Call

    @property
    def result(self) -> Json:
        """The answer, once the turn has ended.

        Raises:
            RpcError: the dialect can show nothing of it.
        """
        dialect, request, run = self.call.dialect, self.call.request, self.run
        if isinstance(request, Send) and request.takes_direct and not run.is_promoted:
            return dialect.direct(run.task.context_id, answer_message(run.task))
        if isinstance(request, Send):
            dialect.check_answer(run.task, request)
        return dialect.sent(run.task, request)


class StreamedAnswer(msgspec.Struct, frozen=True):
    """An answer frame by frame; a frame of None asks for a keep-alive. `run`: the turn that it shows."""

    frames: AsyncIterator[Frame | None]
    run: TaskRun | None = None


Outcome = Done | Waiting | StreamedAnswer


async def find(services: Services, call: Call, task_id: str) -> Task:
    """A task of the caller's with this agent; the same error for absent, expired and foreign."""
    if not task_id or len(task_id) > MAX_TASK_ID_CHARS or not task_id.isprintable():
        raise task_not_found()
    task = await services.reader.find(task_id, call.caller.identity.user_id)
    if task is None or task.handle != call.caller.agent.handle:
        raise task_not_found()
    return task


async def again(services: Services, call: Call, streaming: Streaming, task_id: str = "") -> Outcome:
    """Attach a client that lost its stream; nothing is asked again."""
    seen_id, _, number = call.seen.rpartition(".")
    if not number.isdecimal() or len(number) > 9 or task_id not in ("", seen_id):
        raise task_not_found()
    task, seq = await find(services, call, seen_id), int(number)
    feed = await services.reader.follow(task)
    missed = feed.since(seq) if seq <= feed.task.seq else None
    if missed is None:
        missed = await services.tasks.events_after(task, seq)
    return StreamedAnswer(streaming.again(feed, missed, seq))
