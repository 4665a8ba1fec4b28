"""Calls one remote server: requests out, events in, each answer bounded and read strictly.

`converse` asks one question and follows its task until it rests: by its stream, else by looking again.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import msgspec

from accounts.signing import NoKey, sign
from agents import settings
from agents.core.types import Ask
from agents.links.remote.card import Auth, ServerCard
from agents.links.remote.dialects import RemoteDialect, RemoteQuestion, RemoteRequest, declined
from agents.links.remote.events import (
    Declined,
    Lost,
    Malformed,
    NotSigned,
    RemoteEvent,
    RemoteFailure,
    RemoteTask,
    ServerFailing,
    ServerUnreachable,
    read,
    read_event,
)
from agents.links.remote.reply import RemoteReply
from kit import strict_json
from kit.async_db import db_call
from kit.clock import approximate_now
from kit.durations import seconds
from kit.ids import unguessable
from kit.safe_http import IncomingAnswer, NotSent, StreamingHttp, TooMuch, Unanswered
from kit.sse import EventReader, EventTooLong

MAX_EVENT_BYTES = 4 * 1_048_576
MAX_ANSWER_BYTES = 16 * 1_048_576
MAX_ERROR_BYTES = 65_536
JSON_TYPES = ("application/json", "application/a2a+json", "application/problem+json")
LOOK_AGAIN_S = tuple(map(seconds, (0.2, 0.5, 1.0, 2.0, 5.0)))  # then every 5 s
LOOKS_LOST = 3
CALLER_HEADER = "Clawbridge-Caller"
CALLER_JWT_TYP = "clawbridge-caller+jwt"
CALLER_JWT_VALID_S = 60
SignCaller = Callable[[], Awaitable[str]]
_encode = msgspec.json.Encoder().encode


class RemoteClient:
    """Calls of one conversation with a server, by one card. `sign_caller`: makes the JWT that names the caller of
    a request.
    """

    def __init__(
        self,
        http: StreamingHttp,
        card: ServerCard,
        auth: Auth,
        traceparent: str,
        sign_caller: SignCaller | None = None,
    ) -> None:
        self._sign_caller = sign_caller
        self._http = http
        self._card = card
        self._dialect = RemoteDialect(card.interface)
        self._headers = {**auth.headers, **({"traceparent": traceparent} if traceparent else {})}

    async def ask(
        self, question: RemoteQuestion, on_send: Callable[[], None]
    ) -> AsyncGenerator[RemoteEvent, None]:
        """Yield the server's events about a message as they come. `on_send`: called before the first byte leaves.

        Raises:
            RemoteFailure: the answer broke off, or never began.
        """
        request = self._dialect.send(question, streams=self._card.streams)
        async with self._call(request, "text/event-stream", on_send) as incoming:
            if _media_type(incoming) == "text/event-stream":
                async with aclosing(_events(incoming)) as found:
                    async for data in found:
                        yield read_event(self._dialect.event(_json(data)))
            else:
                yield read_event(self._dialect.event(await _json_body(incoming)))

    async def get_task(self, task_id: str) -> RemoteTask:
        """The present state of a task.

        Raises:
            RemoteFailure: the server did not tell the state.
        """
        return await self._task(self._dialect.get(task_id))

    async def cancel(self, task_id: str) -> RemoteTask:
        """Cancel a task; returns its state after that.

        Raises:
            RemoteFailure: the server may or may not have received the request.
        """
        return await self._task(self._dialect.cancel(task_id))

    async def _task(self, request: RemoteRequest) -> RemoteTask:
        async with self._call(request, JSON_TYPES[0]) as incoming:
            return read(self._dialect.task(await _json_body(incoming)), RemoteTask)

    @asynccontextmanager
    async def _call(
        self, request: RemoteRequest, accept: str, on_send: Callable[[], None] = lambda: None
    ) -> AsyncIterator[IncomingAnswer]:
        """The answer to a request, which has the status 200."""
        headers = {
            "Accept": accept if accept in JSON_TYPES else f"{accept}, {JSON_TYPES[0]}",
            # Bodies are bounded by the bytes that come, and are never decompressed.
            "Accept-Encoding": "identity",
            "Content-Type": JSON_TYPES[0],
            "A2A-Version": request.version,
            "User-Agent": "clawbridge",
            **self._headers,
        }
        if self._sign_caller is not None:
            headers[CALLER_HEADER] = await self._sign_caller()
        body = b"" if request.body is None else _encode(request.body)
        try:
            if len(body):
                headers["Content-Length"] = str(len(body))
            async with self._http.stream(
                request.method, request.url, headers=headers, body=body, on_send=on_send
            ) as incoming:
                if incoming.status != 200:
                    raise await _refusal(incoming)
                yield incoming
        except NotSent as refused:
            raise ServerUnreachable(str(refused)) from None
        except TooMuch as much:
            raise Malformed(f"the remote agent's answer is too long: {much}") from None
        except Unanswered as failure:
            raise Lost(f"the remote agent broke off: {failure}") from None


async def _events(incoming: IncomingAnswer) -> AsyncGenerator[bytes, None]:
    reader = EventReader(MAX_EVENT_BYTES)
    async with aclosing(incoming.pieces(MAX_ANSWER_BYTES)) as pieces:
        async for piece in pieces:
            try:
                found = reader.feed(piece)
            except EventTooLong:
                raise Malformed(f"the remote agent sent an event over {MAX_EVENT_BYTES} bytes") from None
            for data in found:
                yield data


async def _json_body(incoming: IncomingAnswer) -> Any:
    media_type = _media_type(incoming)
    if media_type not in JSON_TYPES:
        raise Malformed(f"the remote agent answered with {media_type or 'no type'}, which is not A2A")
    return _json(await incoming.read(MAX_EVENT_BYTES))


def _json(data: bytes) -> Any:
    try:
        return strict_json.read(data)
    except strict_json.UnreadableText as unsound:
        raise Malformed(f"the remote agent sent what is not sound JSON: {unsound}") from None


async def _refusal(incoming: IncomingAnswer) -> Declined | ServerFailing | Malformed:
    """The failure that an HTTP status other than 200 means; a JSON body may add words."""
    status = incoming.status
    if 300 <= status < 400:
        return Malformed("the remote agent redirects, and the hub follows no redirect")
    said = ""
    if _media_type(incoming) in JSON_TYPES:
        with suppress(Malformed, Unanswered):  # the status says enough
            value = _json(await incoming.read(MAX_ERROR_BYTES))
            said = f": {declined(value['error'])}" if isinstance(value, dict) and value.get("error") else ""
    if status == 429 or status >= 500:
        return ServerFailing(f"the remote agent answered with HTTP {status}{said}")
    if status in (401, 403):
        return Declined(f"the remote agent does not accept the hub's credentials (HTTP {status})", status)
    return Declined(f"the remote agent answered with HTTP {status}{said}", status)


def _media_type(incoming: IncomingAnswer) -> str:
    return incoming.headers.get("content-type", "").partition(";")[0].strip().lower()[:100]


async def converse(
    client: RemoteClient,
    question: RemoteQuestion,
    reply: RemoteReply,
    *,
    on_send: Callable[[], None],
    on_event: Callable[[RemoteEvent], None],
) -> None:
    """Ask, and give each event to `reply` until `reply.end` is set. `on_event`: called with each event before
    that.

    Raises:
        RemoteFailure: the reply will not come.
        ReplyTooLarge: the hub reads no more of the reply.
    """
    if question.task_id:
        await _know_before(client, question.task_id, reply)
    try:
        async with aclosing(client.ask(question, on_send)) as events:
            async for event in events:
                on_event(event)
                reply.take(event)
                if reply.end is not None:
                    return
    except Lost:
        # A server that named the new task, or sent the state of the continued one, has the question: from then on
        # the hub polls for the answer, and never asks again.
        if not reply.task_id or (reply.task_id == question.task_id and not reply.state):
            raise
    if not reply.task_id:
        raise Malformed("the remote agent ended without an answer")
    await _look_again(client, reply, on_event)


async def _know_before(client: RemoteClient, task_id: str, reply: RemoteReply) -> None:
    reply.is_continued = True
    with suppress(RemoteFailure):  # if something is wrong, the question itself will fail
        reply.know(await client.get_task(task_id))


async def _look_again(client: RemoteClient, reply: RemoteReply, on_event: Callable[[RemoteEvent], None]) -> None:
    """Poll a task that goes on without a stream: the server answered early, has no streams, or the connection
    broke.
    """
    looks = lost = 0
    while reply.end is None:
        await asyncio.sleep(LOOK_AGAIN_S[min(looks, len(LOOK_AGAIN_S) - 1)])
        looks += 1
        try:
            task = await client.get_task(reply.task_id)
        except Declined:
            raise
        except RemoteFailure as failure:
            lost += 1
            if lost == LOOKS_LOST:
                raise Lost(str(failure)) from None
            continue
        lost = 0
        on_event(task)
        reply.take(task)


def caller_signer(ask: Ask, server_url: str) -> SignCaller:
    """A function that signs a new JWT about an ask for each request (docs/howto/publish-a-remote-agent.md).

    Raises, when it is called:
        NotSigned: the hub's key cannot be read; nothing was sent.
    """

    def sign_caller() -> str:
        now = int(approximate_now().timestamp())
        claims = {
            "iss": settings.PUBLIC_URL,
            "sub": str(ask.caller_id),
            "aud": server_url,
            "iat": now,
            "exp": now + CALLER_JWT_VALID_S,
            "jti": unguessable(),
            "login": ask.caller_login,
            "agent": ask.target.handle,
        }
        try:
            return sign(_encode(claims), {"typ": CALLER_JWT_TYP})
        except NoKey:
            raise NotSigned("the hub cannot sign who asks: its signing key cannot be read") from None

    return db_call(sign_caller)
