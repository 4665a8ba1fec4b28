"""The calls of tools: the bridge's `CallRunner` runs them, so that each is admitted and followed like one of A2A.

Clients cancel open calls. A client of MCP 2026 closes the stream of the call. A client of MCP 2025 sends
`notifications/cancelled` with the id of its request, by a POST that a proxy may send to any process.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from a2a_bridge.service.answering import CallRunner
from a2a_bridge.service.calls import AwaitedAnswer, Incoming, StreamedAnswer, Wire
from a2a_bridge.service.exchange_notes import ExchangeNote
from a2a_bridge.service.responses import public_error
from a2a_bridge.service.services import find_of_caller
from a2a_bridge.service.streams import KEEPALIVE_S
from a2a_bridge.surface.asgi import RpcWire, find_handle
from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.dialects.task_news import TaskNews, make_task_dialect
from a2a_bridge.wire.errors import agent_not_found, unauthenticated
from a2a_bridge.wire.requests import CancelTask, FollowTask, GetTask, RateTask, Request, Send
from a2a_bridge.wire.task import Task
from accounts.authn import Identity, Presented
from agents.core.errors import Denied
from agents.core.post import Post
from agents.models import Process
from agents.models.choices import Surface
from agents.models.session import alive_since
from agents.transcript.announcements import SurfaceMessage
from kit.async_db import db_call
from kit.clock import db_now
from kit.durations import seconds
from kit.jsonrpc import RpcError

SURFACE = "mcp.cancel"
SESSION_HEADER = "mcp-session-id"
NOTIFICATION = "notifications/cancelled"
MAX_NAME_CHARS = 500
RETURNS_WITHIN_S = seconds(50.0, at_least_s=1.0)
# Codex documents 60 s (`tool_timeout_sec`). `node` and `undici` are the `fetch` of Node.js: programs with the
# official TypeScript SDK, whose requests end after 60 s unless the program chooses another time.
_GIVES_UP_AFTER_60_S = re.compile(r"codex-mcp-client(/.*)?|node|undici", re.IGNORECASE)
OPERATIONS: dict[type[Request], Operation] = {
    Send: Operation.SEND,
    GetTask: Operation.GET,
    CancelTask: Operation.CANCEL,
    RateTask: Operation.RATE,
    FollowTask: Operation.SUBSCRIBE,
}

Progress = Callable[[str], Awaitable[None]]


MCP = make_task_dialect(Surface.MCP)


class CallCanceled(Exception):
    """The client canceled this call by a notification."""


class OpenCall:
    """A call of a tool while it is answered. `leaving_cancels`: a client that leaves cancels the call."""

    def __init__(self, *, leaving_cancels: bool = False) -> None:
        self.leaving_cancels = leaving_cancels
        self._is_canceled = False
        self._task: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        """End the call, because its client canceled it."""
        self.leaving_cancels = self._is_canceled = True
        if self._task is not None:
            self._task.cancel()

    @contextmanager
    def run(self) -> Iterator[None]:
        """While the block runs, `cancel` cancels the current asyncio task.

        Raises:
            CallCanceled: the client canceled it.
        """
        if self._is_canceled:
            raise CallCanceled
        self._task = task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_canceled or task is None:
                raise
            # The task still has to answer, and `asyncio.timeout` checks its count of cancellations.
            task.uncancel()
            raise CallCanceled from None
        finally:
            self._task = None


class RequestName(msgspec.Struct, frozen=True):
    """The name of one request of a client of MCP 2025. `session_id` and `user_agent`: what its requests carry.

    Each client counts its requests for itself, so two clients with one token may use the same `request_id`.
    """

    credential_id: int
    session_id: str
    user_agent: str
    request_id: int | str


def name_request(credential_id: int, headers: Mapping[str, str], request_id: object) -> RequestName | None:
    """The name of a request with this id in its body; None where no client can mean the call."""
    if isinstance(request_id, bool) or not isinstance(request_id, int | str):
        return None
    session_id, user_agent = headers.get(SESSION_HEADER, ""), headers.get("user-agent", "")
    if max(len(str(request_id)), len(session_id), len(user_agent)) > MAX_NAME_CHARS:
        return None
    return RequestName(credential_id, session_id, user_agent, request_id)


class OpenCalls:
    """The calls of this process that clients of MCP 2025 can cancel, by the names of their requests."""

    def __init__(self, process_id: str, post: Post) -> None:
        self._process_id = process_id
        self._post = post
        self._open: dict[RequestName, list[OpenCall]] = {}

    @contextmanager
    def hold(self, name: RequestName | None, call: OpenCall) -> Iterator[None]:
        """While the block runs, the call can be canceled by its name."""
        if name is None:
            yield
            return
        held = self._open.setdefault(name, [])
        held.append(call)
        try:
            yield
        finally:
            held.remove(call)
            if not held:
                del self._open[name]

    async def cancel(self, name: RequestName) -> None:
        """Cancel a call, in whichever process it is answered.

        If two open calls have this name, neither is canceled: the hub cannot tell which is meant.
        """
        if self._cancel_here(name):
            return
        body = SurfaceMessage(SURFACE, msgspec.Raw(msgspec.json.encode(name)))
        for process_id in await db_call(_find_others)(self._process_id):
            await self._post.send(process_id, body)

    def take(self, body: msgspec.Raw) -> None:
        """Take a notification that another process received."""
        self._cancel_here(msgspec.json.decode(body, type=RequestName))

    def _cancel_here(self, name: RequestName) -> bool:
        found = self._open.get(name, [])
        if len(found) == 1:
            found[0].cancel()
        return bool(found)


def _find_others(process_id: str) -> list[str]:
    """The ids of the other living processes."""
    living = Process.objects.filter(beat_at__gt=alive_since(db_now())).exclude(pk=process_id)
    return list(living.values_list("pk", flat=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaller:
    """The caller of a tool: the token of the HTTP request, and the identity that was found for it.

    `open_call`: the call of the request. `returns_within_s`: how long a call takes at most, because the
    client gives up soon after; None: the client has no known time-out. `note`: of the HTTP request.
    """

    token: Presented
    identity: Identity
    body_bytes: int
    traceparent: str
    open_call: OpenCall = field(default_factory=OpenCall)
    returns_within_s: float | None = None
    note: ExchangeNote | None = None


@dataclass(slots=True)
class CallResult:
    """The result of a call. `task`: as it is now; `denied`: why its agent was not asked; `error`: of the call."""

    task: Task | None = None
    denied: Denied | None = None
    error: RpcError | None = None


class ToolWriter:
    """Keeps the outcome of a call. See `a2a_bridge.service.answering.ResponseWriter`.

    `until_resumed`: a stream ends as soon as its task no longer asks for anything.
    """

    def __init__(
        self,
        open_call: OpenCall,
        progress: Progress | None,
        wait_s: float | None,
        *,
        until_resumed: bool = False,
    ) -> None:
        self._open_call = open_call
        self.wire: Wire = RpcWire(MCP)
        self.result = CallResult()
        self._progress = progress
        self._wait_s = wait_s
        self._until_resumed = until_resumed

    @property
    def leaving_cancels(self) -> bool:
        """True if a client that leaves cancels its request."""
        return self._open_call.leaving_cancels

    async def at_once(self, result: object) -> None:
        """Keep a task that is known."""
        self._take(result)

    async def wait(self, waiting: AwaitedAnswer) -> None:
        """Wait for the end of a turn; its own deadlines bound it."""
        while not await waiting.run.answered(KEEPALIVE_S):
            pass
        self._take(waiting.result)
        self.result.denied = waiting.run.denied

    async def stream(self, answer: StreamedAnswer, max_age_s: float) -> None:
        """Report frames as progress; keep the task as it is at the end, or when the client stops waiting."""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(max_age_s, self._wait_s or max_age_s)):
                async for frame in answer.frames:
                    if frame is not None:
                        await self._take_news(frame[1])
                    if (
                        self._until_resumed
                        and self.result.task is not None
                        and not self.result.task.is_interrupted
                    ):
                        break
        self.result.denied = answer.run.denied if answer.run else None

    async def refuse(self, error: RpcError) -> None:
        """Keep an error."""
        self.result.error = error

    async def end(self) -> None:
        """The stream was cut off, because the caller's token is no longer valid."""
        self.result.error = unauthenticated()

    async def _take_news(self, news: object) -> None:
        assert isinstance(news, TaskNews)  # noqa: S101  for the type checker: the dialect makes them
        self.result.task = news.task
        if (said := news.text or news.note) and self._progress is not None:
            await self._progress(said)

    def _take(self, result: object) -> None:
        assert isinstance(result, Task)  # noqa: S101  for the type checker: the dialect's answers are tasks
        self.result.task = result


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Runs the calls of tools."""

    runner: CallRunner

    async def run(
        self,
        caller: ToolCaller,
        handle: str,
        request: Request,
        progress: Progress | None = None,
        wait_s: float | None = None,
    ) -> CallResult:
        """Run one call to an agent. The result holds every error.

        `progress`: gets what the agent says while it works. `wait_s`: how long the client waits. With either of
        them a message is a stream: its task can be read from the beginning. A task that asks for something is
        followed (`FollowTask`) until it does not.
        """
        writer = ToolWriter(caller.open_call, progress, wait_s, until_resumed=isinstance(request, FollowTask))
        is_stream = isinstance(request, Send) and not request.waits
        incoming = Incoming(
            handle=find_handle(handle),
            token=caller.token,
            digest=caller.token.digest,
            wire=writer.wire,
            body_bytes=caller.body_bytes,
            dialect=MCP,
            operation=Operation.STREAM if is_stream else OPERATIONS[type(request)],
            request=request,
            traceparent=caller.traceparent,
            may_cancel=True,
            is_plain_send=isinstance(request, Send) and not (request.task_id or request.needs),
            note=caller.note,
        )
        try:
            if incoming.handle is None:
                raise agent_not_found()
            await self.runner.run(incoming, writer)
        except Exception as failure:  # noqa: BLE001  whatever fails becomes the result
            writer.result.error = public_error(failure)
        return writer.result

    async def run_of_task(
        self,
        caller: ToolCaller,
        task_id: str,
        request: Request,
        progress: Progress | None = None,
        wait_s: float | None = None,
    ) -> CallResult:
        """Run a call about a task of the caller's, whichever agent it is with."""
        try:
            task = await find_of_caller(self.runner.operations.services, task_id, caller.identity.user_id)
        except Exception as failure:  # noqa: BLE001  whatever fails becomes the result
            return CallResult(error=public_error(failure))
        result = await self.run(caller, task.handle, request, progress, wait_s)
        if result.task is None:  # the call failed; the client has to know which task still waits
            result.task = task
        return result


def find_return_s(user_agent: str) -> float | None:
    """The seconds after which a call returns the task as it is; None if the client has no known time-out."""
    return RETURNS_WITHIN_S if _GIVES_UP_AFTER_60_S.fullmatch(user_agent) else None
