"""A call on its way through the bridge: who makes it, what serves it, and in which form its answer comes."""

from collections.abc import AsyncIterator, Callable

import msgspec

from a2a_bridge.dialects.dialect import Dialect, Operation
from a2a_bridge.errors import task_not_found
from a2a_bridge.exchange import Exchanges
from a2a_bridge.idempotency import Repeat
from a2a_bridge.joining import Joined
from a2a_bridge.pushes.pushes import Pushes
from a2a_bridge.requests import Request, Send
from a2a_bridge.streams import Frame, Streaming
from a2a_bridge.tasks.feed import Feeds
from a2a_bridge.tasks.pieces import answer_message
from a2a_bridge.tasks.reader import TaskReader
from a2a_bridge.tasks.record import Task
from a2a_bridge.tasks.run import TaskRun
from a2a_bridge.tasks.store import TaskStore
from accounts.authn import Identity
from agents.dispatch import Dispatcher
from agents.pieces import Json
from agents.post import Post
from agents.types import Target
from kit.asgi import HttpRequest

HYBRID = "hybrid"
MAX_TASK_ID_CHARS = 64


class Caller(msgspec.Struct, frozen=True):
    """Who calls, and which agent's address they call."""

    identity: Identity
    agent: Target


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


def call_of(request: HttpRequest, caller: Caller, dialect: Dialect, operation: Operation, wanted: Request) -> Call:
    """A call with what its headers say besides; without a direct reply where the agent always makes tasks."""
    headers = request.headers
    if isinstance(wanted, Send) and wanted.takes_direct and caller.agent.style != HYBRID:
        wanted = msgspec.structs.replace(wanted, takes_direct=False)
    return Call(
        caller=caller,
        dialect=dialect,
        operation=operation,
        request=wanted,
        seen=headers.get("last-event-id", "") if dialect.replays else "",
        key=headers.get("idempotency-key", ""),
        traceparent=request.traceparent,
    )


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
