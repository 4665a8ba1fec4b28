"""How an answer is sent: one JSON object with the status of its end, or the events of a stream as they come."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from a2a_bridge.service.answering import CallAnswer, Sending, public_error
from a2a_bridge.service.calls import StreamedAnswer, Waiting
from a2a_bridge.service.streams import KEEPALIVE_S
from a2a_bridge.wire.dialects.task_news import TaskNews, make_task_dialect
from a2a_bridge.wire.errors import unauthenticated
from a2a_bridge.wire.task import State, Task
from agents.core.errors import Denied
from agents.models.choices import Surface
from kit import sse
from kit.asgi import ClientLeft, Header, Receive, RequestRefused, Send
from kit.clock import approximate_now
from kit.jsonrpc import RpcError
from openai_api.wire.content import attachments_of, content_of
from openai_api.wire.errors import (
    ModelRefused,
    refusal_of_denied,
    refusal_of_error,
    refusal_of_request,
    refusal_of_task,
)
from openai_api.wire.messages import AskedAnswer

TOO_LONG = ModelRefused(504, "stream_too_long", "the hub ends a stream of this age")

encode = msgspec.json.Encoder().encode


CHAT = make_task_dialect(Surface.CHAT)


class ModelWire(ABC):
    """Answers and errors in one form of OpenAI's API. See `a2a_bridge.service.calls.Wire`."""

    media_type = b"application/json"
    allow = b"POST, OPTIONS"
    streams_errors = False
    headers: Sequence[Header] = ()

    def __init__(self, public_url: str) -> None:
        self.public_url = public_url
        self.created_at = int(approximate_now().timestamp())

    @abstractmethod
    def read(self, body: bytes) -> AskedAnswer:
        """The request in a body, which is kept as far as the answer needs it.

        Raises:
            RpcError: it is not sound.
        """

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
    """The HTTP response to one request. See `a2a_bridge.service.answering.ResponseWriter`.

    What waits for its end is silent until then, because only the end says which status it has (docs/adr/0117).
    """

    __slots__ = ("chat",)

    def __init__(self, receive: Receive, send: Send, wire: ModelWire, extra: Iterable[Header]) -> None:
        super().__init__(receive, send, wire, extra)
        self.chat = wire

    def at_once(self, result: object) -> Sending:
        """Send a task that is known."""
        return self._finish(result, None)

    def send_whole(self, body: bytes) -> Sending:
        """Send a body that is no agent's answer."""
        return self._whole(body)

    async def wait(self, waiting: Waiting) -> None:
        """Wait for the end of a turn, silently; a client that disconnects stops waiting."""
        if not await waiting.run.answered(KEEPALIVE_S):
            left = asyncio.ensure_future(self._receive())  # the body was read: nothing else comes
            try:
                while not await waiting.run.answered(KEEPALIVE_S):
                    if left.done():
                        raise ClientLeft
            finally:
                left.cancel()
        await self._finish(waiting.result, getattr(waiting.run, "denied", None))

    async def stream(self, answer: StreamedAnswer, max_age_s: float) -> None:
        """Send text as it comes; a turn that was refused at once is an error with its own status."""
        run = answer.run
        if run is not None and run.denied is not None:
            await self._refuse(refusal_of_denied(run.denied, run.task.handle))
            return
        self._is_stream = True
        ends_at = time.monotonic() + max_age_s
        await self._begin(sse.HEADERS)
        left = asyncio.ensure_future(self._receive())  # the body was read: nothing else comes
        task, sent = None, ""
        try:
            async for frame in answer.frames:
                if left.done():
                    raise ClientLeft
                if frame is None:
                    await self._say(sse.KEEPALIVE)
                else:
                    task, sent = await self._tell(frame[1], is_first=task is None, sent=sent)
                if time.monotonic() > ends_at:
                    break
        finally:
            left.cancel()
        await self._end_stream(task, sent, run.denied if run else None)

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
        with suppress(ClientLeft):
            if isinstance(failure, RequestRefused):
                await self._refuse(refusal_of_request(failure))
            else:
                await self.refuse(public_error(failure))

    async def _tell(self, news: object, *, is_first: bool, sent: str) -> tuple[Task, str]:
        """Send what is new; returns the task, and all that was sent."""
        assert isinstance(news, TaskNews)  # noqa: S101  for the type checker: the dialect makes them
        events = self.chat.opening(news.task) if is_first else b""
        if news.text:
            events += self.chat.delta(news.task, news.text)
        if events:
            await self._say(events)
        return news.task, sent + news.text

    async def _end_stream(self, task: Task | None, sent: str, denied: Denied | None) -> None:
        """Send what is missing, and the end."""
        refusal = refusal_after(task, denied) if task is not None else TOO_LONG
        if task is None or refusal is not None:
            await self._refuse(refusal or TOO_LONG)
            return
        public_url = self.chat.public_url
        whole = content_of(task, public_url)
        # A reply that was replaced meanwhile is not said again.
        rest = whole.removeprefix(sent) if whole.startswith(sent) else attachments_of(task, public_url)
        more = self.chat.delta(task, rest) if rest else b""
        await self._say(more + self.chat.ending(task), is_last=True)

    async def _finish(self, result: object, denied: Denied | None) -> None:
        assert isinstance(result, Task)  # noqa: S101  for the type checker: the dialect's answers are tasks
        refusal = refusal_after(result, denied)
        await (self._refuse(refusal) if refusal is not None else self._whole(self.wire.result(result)))

    async def _refuse(self, refusal: ModelRefused) -> None:
        if self._has_begun:
            await self._say(self.chat.failure(refusal), is_last=True)
        else:
            await self._whole(refusal.body, refusal.status, refusal.headers)


def refusal_after(task: Task, denied: Denied | None) -> ModelRefused | None:
    """Why there is no answer; None when there is one."""
    if denied is not None:
        return refusal_of_denied(denied, task.handle)
    if task.state is State.COMPLETED or task.is_interrupted:
        return None
    return refusal_of_task(task) if task.is_terminal else TOO_LONG
