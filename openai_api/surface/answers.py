"""The two ways to send an answer: one JSON object with the status of its end, or the events of a stream as they
come.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from a2a_bridge.service.calls import AwaitedAnswer, StreamedAnswer
from a2a_bridge.service.responses import CallAnswer, Sending, public_error
from a2a_bridge.service.streams import KEEPALIVE_S
from a2a_bridge.wire.dialects.task_news import TaskNews, make_task_dialect
from a2a_bridge.wire.errors import unauthenticated
from a2a_bridge.wire.task import State, Task
from agents.core.errors import Denied
from agents.models.choices import Surface
from kit import sse
from kit.asgi import ClientLeft, Exchange, Header, Receive, RequestRefused, Send, slow_down
from kit.clock import approximate_now
from kit.jsonrpc import RpcError
from openai_api.wire.errors import (
    ModelRefused,
    refusal_of_denied,
    refusal_of_error,
    refusal_of_request,
    refusal_of_task,
)
from openai_api.wire.messages import AskedAnswer
from openai_api.wire.parts import attachments_of, content_of

TOO_LONG = ModelRefused(504, "stream_too_long", "the hub ends a stream of this age")

encode = msgspec.json.Encoder().encode


CHAT = make_task_dialect(Surface.CHAT)


class StreamEnd(NamedTuple):
    """The end of a stream: its task, the reason if the agent was not asked, and the text that was sent."""

    task: Task | None
    denied: Denied | None = None
    sent: str = ""


class ModelWire(ABC):
    """Answers and errors in one form of OpenAI's API. See `a2a_bridge.service.calls.Wire`.

    `checked`: the text of the answer, where the caller demanded a format; empty: the task says it. `earlier`: the
    task whose reply had not that format; its tokens count too.
    """

    binding = "Chat completions"  # what the record of its exchanges calls this form
    media_type = b"application/json"
    allow = b"POST, OPTIONS"
    streams_errors = False
    headers: Sequence[Header] = ()

    def __init__(self, public_url: str) -> None:
        self.public_url = public_url
        self.checked = ""
        self.earlier: Task | None = None
        self.created_at = int(approximate_now().timestamp())

    @abstractmethod
    def read(self, body: bytes) -> AskedAnswer:
        """The request in a body, which is kept as far as the answer needs it.

        Raises:
            RpcError: it is not sound.
        """

    def content(self, task: Task) -> str:
        """The text of an answer."""
        return self.checked or content_of(task, self.public_url)

    @abstractmethod
    def result(self, result: object) -> bytes:
        """A whole answer."""

    @abstractmethod
    def opening(self, task: Task) -> bytes:
        """The events that begin a stream."""

    @abstractmethod
    def delta(self, task: Task, text: str) -> bytes:
        """The event that adds text."""

    @abstractmethod
    def ending(self, task: Task) -> bytes:
        """The events after the last text."""

    def failure(self, refusal: ModelRefused) -> bytes:
        """The event that ends a stream without an answer."""
        return sse.event(refusal.body)

    def frame(self, shown: object) -> bytes:
        return encode(shown)

    def error(self, error: RpcError) -> bytes:
        return refusal_of_error(error).body

    def status(self, error: RpcError) -> int:
        return refusal_of_error(error).status


class ChatAnswer(CallAnswer):
    """The HTTP response to one request. See `a2a_bridge.service.responses.ResponseWriter`.

    `check_caller`: checks the token before the error of a bad request is sent; its refusal is sent instead.

    An answer that is one JSON object is silent until its end, because only the end gives the status
    (docs/adr/0117).
    """

    __slots__ = ("_ends_at", "chat", "check_caller")

    def __init__(
        self,
        receive: Receive,
        send: Send,
        wire: ModelWire,
        extra: Iterable[Header],
        exchange: Exchange | None = None,
    ) -> None:
        super().__init__(receive, send, wire, extra, exchange=exchange)
        self.chat = wire
        self.check_caller: Callable[[], Awaitable[object]] | None = None
        self._ends_at = 0.0

    def at_once(self, result: object) -> Sending:
        """Send a task that is known."""
        return self._finish(task_in(result), None)

    def send_whole(self, body: bytes) -> Sending:
        """Send a body that is no agent's answer."""
        return self._respond(body)

    def body_now(self, waiting: AwaitedAnswer) -> bytes | None:
        """The answer at the end of a turn; None for a refusal, which has its own status."""
        task = task_in(waiting.result)
        return None if refusal_after(task, waiting.run.denied) is not None else self.wire.result(task)

    async def wait(self, waiting: AwaitedAnswer) -> None:
        """Wait for the end of a turn, and answer."""
        await self._finish(*await self.wait_for_end(waiting))

    async def wait_for_end(self, waiting: AwaitedAnswer) -> tuple[Task, Denied | None]:
        """Wait for the end of a turn, silently; a client that disconnects stops waiting."""
        if not await waiting.run.answered(KEEPALIVE_S):
            with self._watch_client() as check_client:
                while not await waiting.run.answered(KEEPALIVE_S):
                    check_client()
        return task_in(waiting.result), waiting.run.denied

    async def stream(self, answer: StreamedAnswer, max_age_s: float) -> None:
        """Send text as it comes; a turn that was refused at once is an error with its own status."""
        await self._end_stream(await self.follow(answer, max_age_s))

    async def follow(self, answer: StreamedAnswer, max_age_s: float, *, is_held: bool = False) -> StreamEnd:
        """Send text as it comes, until its end. `is_held`: comments are sent instead of text."""
        run = answer.run
        if run is not None and run.denied is not None:
            return StreamEnd(run.task, run.denied)
        if not self._has_begun:
            self._is_stream, self._ends_at = True, time.monotonic() + max_age_s
            await self._send_head(sse.HEADERS)
        task, sent = None, ""
        with self._watch_client() as check_client:
            async for frame in answer.frames:
                check_client()
                if frame is not None and is_held:
                    task = _news_in(frame[1]).task
                if frame is None or is_held:
                    await self._send_body(sse.KEEPALIVE)
                else:
                    task, sent = await self._send_news(frame[1], is_first=task is None, sent=sent)
                if time.monotonic() > self._ends_at:
                    break
        return StreamEnd(task, run.denied if run else None, sent)

    async def answer_held(self, task: Task | None, denied: Denied | None) -> None:
        """Answer with a task whose text was held back."""
        if not self._has_begun and task is not None:
            await self._finish(task, denied)
            return
        if task is not None and refusal_after(task, denied) is None:
            await self._send_body(self.chat.opening(task))
        await self._end_stream(StreamEnd(task, denied))

    async def check_connected(self) -> None:
        """Raise ClientLeft if the client has disconnected by now."""
        with self._watch_client() as check_client:
            await asyncio.sleep(0)
            check_client()

    async def refuse(self, error: RpcError) -> None:
        """End with an error, before or after the response has begun."""
        await self._refuse(refusal_of_error(error))

    def end(self) -> Sending:
        """The stream was cut off, because the caller's token is no longer valid."""
        return self._refuse(refusal_of_error(unauthenticated()))

    async def fail(self, failure: Exception) -> None:
        """End with the public error of a failure."""
        if isinstance(failure, ClientLeft):
            return
        if isinstance(failure, RpcError) and self.check_caller is not None:
            try:
                await self.check_caller()
            except Exception as refused:  # noqa: BLE001  a missing or revoked token takes precedence
                failure = refused
        refusal = refusal_of_failure(failure)
        await slow_down(refusal.status)
        with suppress(ClientLeft):
            await self._refuse(refusal)

    async def _send_news(self, shown: object, *, is_first: bool, sent: str) -> tuple[Task, str]:
        """Send the new text of a frame; returns the task, and all text that was sent so far."""
        news = _news_in(shown)
        events = self.chat.opening(news.task) if is_first else b""
        if news.text:
            events += self.chat.delta(news.task, news.text)
        if events:
            await self._send_body(events)
        return news.task, sent + news.text

    async def _end_stream(self, end: StreamEnd) -> None:
        """Send the text that was not sent yet, and the events that end the stream."""
        task, denied, sent = end
        refusal = refusal_after(task, denied) if task is not None else TOO_LONG
        if task is None or refusal is not None:
            await self._refuse(refusal or TOO_LONG)
            return
        whole = self.chat.content(task)
        # If the agent replaced the reply after a part of it was sent, the new reply is not sent.
        is_more = whole.startswith(sent)
        rest = whole.removeprefix(sent) if is_more else attachments_of(task, self.chat.public_url)
        more = self.chat.delta(task, rest) if rest else b""
        await self._send_body(more + self.chat.ending(task), is_last=True)

    async def _finish(self, task: Task, denied: Denied | None) -> None:
        refusal = refusal_after(task, denied)
        await (self._refuse(refusal) if refusal is not None else self._respond(self.wire.result(task)))

    async def _refuse(self, refusal: ModelRefused) -> None:
        if self._has_begun:
            await self._send_body(self.chat.failure(refusal), is_last=True)
        else:
            await self._respond(refusal.body, refusal.status, refusal.headers)


def refusal_of_failure(failure: Exception) -> ModelRefused:
    """The public refusal for a failure."""
    if isinstance(failure, RequestRefused):
        return refusal_of_request(failure)
    return refusal_of_error(public_error(failure))


def task_in(result: object) -> Task:
    """The result of a call, which is a task in this dialect."""
    assert isinstance(result, Task)  # noqa: S101  for the type checker: the dialect's answers are tasks
    return result


def refusal_after(task: Task, denied: Denied | None) -> ModelRefused | None:
    """The refusal that tells why there is no answer; None if there is an answer."""
    if denied is not None:
        return refusal_of_denied(denied, task.handle)
    if task.state is State.COMPLETED or task.is_interrupted:
        return None
    return refusal_of_task(task) if task.is_terminal else TOO_LONG


def _news_in(shown: object) -> TaskNews:
    assert isinstance(shown, TaskNews)  # noqa: S101  for the type checker: the dialect makes them
    return shown
