"""The types of a call: its caller, its request, its outcome and the form of its response."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec

from a2a_bridge.service.exchange_notes import ExchangeNote
from a2a_bridge.service.repeats import JoinedTask, RepeatedSend
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.streams import Frame
from a2a_bridge.service.tasks.pieces import answer_message
from a2a_bridge.wire.dialects.dialect import Dialect, Operation
from a2a_bridge.wire.errors import agent_not_found, form_error, refused, too_large
from a2a_bridge.wire.requests import Request, Send
from accounts.authn import Identity, Presented, TokenScope, check_caller
from agents.core.types import AskTarget, LookUpResult
from kit.asgi import Header, HttpRequest, RequestRefused
from kit.jsonrpc import RpcError

HYBRID = "hybrid"

_encode = msgspec.json.Encoder().encode


class AgentCaller(msgspec.Struct, frozen=True):
    """The caller, and the agent whose address they call."""

    identity: Identity
    agent: AskTarget


class Wire(Protocol):
    """The form in which a binding wraps the results of a dialect.

    `media_type`: of a response that is no stream. `allow`: the HTTP methods its address takes. `streams_errors`: a
    refusal on HTTP 200 is a stream. `headers`: of every response.
    """

    media_type: bytes
    allow: bytes
    streams_errors: bool

    @property
    def headers(self) -> Sequence[Header]: ...

    def result(self, result: object) -> bytes:
        """A whole answer."""

    def frame(self, shown: object) -> bytes:
        """A frame of a stream."""

    def error(self, error: RpcError) -> bytes:
        """A refusal."""

    def status(self, error: RpcError) -> int:
        """The HTTP status a refusal travels on."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One valid request. `seen`: the id of the last frame that a returning client got (Last-Event-ID).

    `key`: its Idempotency-Key. `may_cancel`: the client may cancel the turn by leaving, see `Exchanges.leave`.
    `note`: of the request and its response; None where the hub records none.
    """

    caller: AgentCaller
    dialect: Dialect
    operation: Operation
    request: Request
    seen: str = ""
    key: str = ""
    traceparent: str = ""
    may_cancel: bool = False
    note: ExchangeNote | None = None


class Incoming(msgspec.Struct, kw_only=True):
    """A request that was read, before its caller and its agent are looked up.

    `digest`: of its `token`. `refused`: what is wrong with the form of the request, whatever it says. `error`: why
    what it says is no call; else `dialect`, `operation` and `request` are set. `wire`: how it is answered, once
    its caller may call. `call`: what it became. `is_readable`: what it says may matter; else `check` refuses it,
    whatever is found. `is_plain_send`: it is a send that needs only its caller and its agent to become an ask.
    """

    handle: str | None
    digest: str | None
    wire: Wire
    token: Presented | None = None
    body_bytes: int = 0
    refused: RequestRefused | None = None
    is_readable: bool = True
    is_plain_send: bool = False
    error: RpcError | None = None
    dialect: Dialect | None = None
    operation: Operation | None = None
    request: Request | None = None
    seen: str = ""
    key: str = ""
    traceparent: str = ""
    may_cancel: bool = False
    note: ExchangeNote | None = None
    call: Call | None = None

    def take(self, http: HttpRequest, dialect: Dialect, operation: Operation, request: Request) -> None:
        """The call has the content of the request, besides its headers."""
        self.dialect, self.operation, self.request = dialect, operation, request
        self.seen = http.headers.get("last-event-id", "") if dialect.replays else ""
        self.key = http.headers.get("idempotency-key", "")
        self.traceparent = http.traceparent
        if isinstance(request, Send) and request.question and not (self.key or self.seen):
            is_checked = bool(request.needs or request.only_modes)
            goes_on = bool(request.task_id or request.approves or (request.resumes and request.context_id))
            self.is_plain_send = not (goes_on or request.push or is_checked)

    def check(self, found: LookUpResult) -> AgentCaller:
        """The caller, checked.

        Raises:
            RpcError: of what is wrong the first: agent, HTTP method, media type, size, caller.
        """
        agent = found.agent
        if agent is None:
            raise agent_not_found()
        if self.refused is not None:
            raise form_error(self.refused)
        if agent.max_body_bytes is not None and self.body_bytes > agent.max_body_bytes:
            raise too_large(agent.max_body_bytes)
        try:
            return AgentCaller(check_caller(self.token, found.identity, TokenScope.ASK, agent=agent.handle), agent)
        except RequestRefused as refused:
            raise form_error(refused) from None


class CompleteAnswer(msgspec.Struct, frozen=True):
    """An answer that is complete."""

    result: object


class AwaitedAnswer(msgspec.Struct, frozen=True):
    """An answer that comes with the end of a turn."""

    run: TaskRun | RepeatedSend | JoinedTask
    call: Call

    @property
    def result(self) -> object:
        """The answer, once the turn has ended.

        Raises:
            RpcError: the dialect cannot express the answer, or the message was not sent to the agent of its task.
        """
        dialect, request, run = self.call.dialect, self.call.request, self.run
        if isinstance(run, TaskRun) and run.before is not None and (text := run.unsent_text):
            raise refused(text)
        if isinstance(request, Send):
            if dialect.check_answer is not None:
                dialect.check_answer(run.task, request)
            if request.takes_direct and dialect.render_message and not run.is_promoted:
                return dialect.render_message(run.task.context_id, answer_message(run.task))
        return dialect.render_answer(run.task, request)


class StreamedAnswer(msgspec.Struct, frozen=True):
    """An answer frame by frame; a frame of None asks for a keep-alive. `run`: the turn that it follows, if any."""

    frames: AsyncIterator[Frame | None]
    run: TaskRun | JoinedTask | None = None


Outcome = CompleteAnswer | AwaitedAnswer | StreamedAnswer


def digest_of(send: Send) -> bytes:
    """A digest of all of a message but the form in which its answer is to be shown: equal for equal messages."""
    if send.digest:
        return send.digest
    is_direct = send.takes_direct and send.plain_is_direct
    said: tuple[object, ...] = (send.message, send.task_id, send.context_id, is_direct, send.push)
    if send.metadata:
        said = (*said, send.metadata)
    if send.output_modes:
        said = (*said, send.output_modes)
    return hashlib.blake2b(_encode(said), digest_size=16).digest()
