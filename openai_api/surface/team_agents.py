"""`POST /agent/{name}`: a completion by the agent of that name in the caller's team, published or not.

OpenClaw's gateway passes such requests on to the model of an agent. `/chat/completions` and `/v1/chat/completions`
below this path are the same, so that clients of OpenAI's API take `/agent/{name}` as their base address.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import msgspec

from a2a_bridge.service.calls import StreamedAnswer
from a2a_bridge.service.exchange_log import ExchangeLog
from a2a_bridge.service.exchange_notes import begin_note
from a2a_bridge.service.streams import KEEPALIVE_S, Frame
from a2a_bridge.wire.dialects.reading import invalid
from a2a_bridge.wire.dialects.task_news import TaskNews
from a2a_bridge.wire.errors import agent_not_found
from a2a_bridge.wire.requests import Send as AskedSend
from a2a_bridge.wire.task import Message, Role, State, Task
from accounts.authn import Identity, TokenScope, Unauthenticated
from agents.core.rest_server import RestServer
from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from agents.transcript.pieces import Part
from gateway.service.client import Gateway
from gateway.service.messages import MessageToAsk
from gateway.service.protocol_shapes import output_of
from gateway.wire.errors import FrameRefused, GatewayErrorCode, failed_turn_error
from gateway.wire.frame_types import is_agent_name, is_id
from gateway.wire.permissions import Action, check_action
from kit.asgi import RETRY_SOON, HttpRequest, RequestRefused, Send
from kit.async_db import AccountCall
from kit.clock import approximate_now, iso
from kit.concurrency import ConcurrencyLimit
from kit.jsonrpc import read_value
from kit.tasks import start_apart
from openai_api.surface.answers import ChatAnswer
from openai_api.surface.endpoint import CONVERSATION, answer_request, read_name
from openai_api.surface.formatted import HeldReply, answer_in_format
from openai_api.surface.forms import ChatWire
from openai_api.wire.messages import MODEL_PREFIX, AskedAnswer, make_send

PATH = re.compile(r"/agent/([^/]+)(?:(?:/v1)?/chat/completions)?")
STATUSES = {
    GatewayErrorCode.AGENT_OFFLINE: (503, "agent_offline"),
    GatewayErrorCode.AGENT_BUSY: (429, "agent_busy"),
    GatewayErrorCode.RATE_LIMITED: (429, "rate_limit_exceeded"),
    GatewayErrorCode.PERMISSION_DENIED: (403, ""),
    GatewayErrorCode.INVALID_CONTENT: (400, ""),
}
OUT_OF_BUDGET = 429  # the status for a limit without a code in the protocol


def is_team_agent(path: str) -> bool:
    """True if `TeamModels` serves a path."""
    return PATH.fullmatch(path) is not None


class TeamWire(ChatWire):
    """Chat completions whose model is the agent of the address, not the model in the body."""

    def __init__(self, public_url: str, name: str) -> None:
        super().__init__(public_url)
        self.agent = name

    def read(self, body: bytes) -> AskedAnswer:
        value = read_value(body)
        if isinstance(value, dict):
            body = msgspec.json.encode(value | {"model": f"{MODEL_PREFIX}{self.agent}"})
        return super().read(body)


@dataclass(frozen=True, slots=True)
class TeamModels:
    """Answers `PATH`. `reply_wait_s`: how long to wait for an agent that has no wait of its own.

    `check`: runs the check of a format. `exchanges`: records requests and responses, if the hub does.
    """

    http: RestServer
    gateway: Gateway
    streams: ConcurrencyLimit
    reply_wait_s: float
    stream_max_age_s: float
    check: AccountCall
    exchanges: ExchangeLog | None = None

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; no input of a client makes this raise."""
        found = PATH.fullmatch(request.path)
        name = found[1] if found else ""
        await answer_request(request, send, TeamWire(self.http.public_url, name), self._ask, self.exchanges)

    async def _ask(self, request: HttpRequest, answer: ChatAnswer) -> None:
        body = await request.read_checked(("POST",))
        if self.exchanges is not None:
            answer.note = begin_note(request, body, len(body), answer.chat.binding)
        await self.http.get_caller(request, TokenScope.ASK)  # before other faults are reported
        assert isinstance(answer.chat, TeamWire)  # noqa: S101  for the type checker: `__call__` made the wire
        await self.ask(request, answer, answer.chat.read(body), answer.chat.agent)

    async def ask(self, request: HttpRequest, answer: ChatAnswer, asked: AskedAnswer, name: str) -> None:
        """Ask the agent of that name, and answer.

        Raises:
            RequestRefused, RpcError: nothing was sent.
        """
        identity = await self.http.get_caller(request, TokenScope.ASK)
        if not is_agent_name(name):
            raise agent_not_found()
        conversation_id = read_name(request) or asked.conversation
        if conversation_id and not is_id(conversation_id):
            raise invalid(CONVERSATION, f"{CONVERSATION}: want at most 128 characters")
        wanted = make_send(asked, conversation_id)
        if asked.format is not None:
            slot = self.streams.hold(identity.user_id) if asked.is_stream else nullcontext()
            ask = partial(self._ask_once, request, identity, answer, name)
            check = partial(self.check, identity.user_id, request.receive)
            with slot:
                await answer_in_format(answer, check, asked.format, wanted, "", ask)
            return
        if not asked.is_stream:
            running, settled = await self._start(request, identity, answer, name, wanted)
            await self.http.wait(request, identity, settled)
            await answer.at_once(make_task(identity, name, running, settled.result()))
            return
        with self.streams.hold(identity.user_id):
            running, settled = await self._start(request, identity, answer, name, wanted)
            await self._follow(identity, answer, _stream(identity, name, running, settled))

    async def _ask_once(
        self, request: HttpRequest, identity: Identity, answer: ChatAnswer, name: str, wanted: AskedSend, key: str
    ) -> HeldReply:
        """Ask for a reply in a format.

        Raises:
            RequestRefused, RpcError: nothing was sent; or the caller's credential was revoked.
        """
        held = HeldReply(answer)
        running, settled = await self._start(request, identity, answer, name, wanted)
        if wanted.waits:
            await self.http.wait(request, identity, settled)
            await held.at_once(make_task(identity, name, running, settled.result()))
        else:
            await self._follow(identity, held, _stream(identity, name, running, settled))
        return held

    async def _start(
        self, request: HttpRequest, identity: Identity, answer: ChatAnswer, name: str, wanted: AskedSend
    ) -> "tuple[RunningTurn, asyncio.Future[SettledTurn]]":
        """Ask the agent; its turn, and how the turn ends.

        Raises:
            RequestRefused, RpcError: nothing was sent.
        """
        try:
            running = await self._begin(identity, name, wanted, request.traceparent)
        except FrameRefused as refused:
            raise refuse(refused) from None
        if (note := answer.note) is not None:
            note.chat_id, note.caller_id = running.ask.chat_id, running.ask.caller_id
        return running, start_apart(self.gateway.link.start, _settle(running), "completion")

    async def _follow(
        self, identity: Identity, answer: ChatAnswer | HeldReply, frames: AsyncIterator[Frame | None]
    ) -> None:
        """Stream the answer until its end, or until the caller's credential is revoked."""
        try:
            with self.http.callers.hold(identity.credential_id):
                await answer.stream(StreamedAnswer(frames), self.stream_max_age_s)
        except Unauthenticated:
            await answer.end()

    async def _begin(self, identity: Identity, name: str, wanted: AskedSend, traceparent: str) -> RunningTurn:
        """Ask the agent.

        Raises:
            FrameRefused: nothing was sent.
        """
        check_action(identity, Action.SEND, own="", agent="")
        router = self.gateway.router
        found = await router.find_addressee(name, identity.user_id)
        return await router.ask(
            identity,
            name,
            MessageToAsk(wanted.question, tuple(wanted.parts)),
            message_id=wanted.message.id,
            session_id=wanted.context_id,
            wait_s=found.reply_wait_s(self.reply_wait_s),
            traceparent=traceparent,
        )


def refuse(refused: FrameRefused) -> Exception:
    """The error of OpenAI's API for a refusal of the hub."""
    if refused.code is GatewayErrorCode.AGENT_NOT_FOUND:
        return agent_not_found()
    if refused.reason == "unavailable":
        return RequestRefused(503, "unavailable", str(refused), RETRY_SOON)
    status, code = STATUSES.get(refused.code, (OUT_OF_BUDGET, ""))
    is_soon = code in ("agent_offline", "agent_busy")
    headers = refused.retry_headers or ([RETRY_SOON] if is_soon else [])
    return RequestRefused(status, code or refused.name, str(refused), *headers)


def make_task(identity: Identity, name: str, running: RunningTurn, settled: SettledTurn) -> Task:
    """The task that the answer shows, from a settled turn."""
    is_done = settled.outcome is Outcome.COMPLETED
    failure = failed_turn_error(settled.reason, settled.own_words)
    text = output_of(settled, running.pieces) if is_done else str(failure)
    chat_id = running.ask.chat_id
    return Task(
        id=f"chatcmpl-{chat_id}",
        caller_id=identity.user_id,
        handle=f"{identity.login}/{name}",
        context_id=running.ask.context_id,
        chat_id=chat_id,
        home="",
        state=State.COMPLETED if is_done else State.FAILED,
        updated_at=iso(approximate_now()),
        history=(Message(f"ask-{chat_id}", Role.USER, (Part(text=running.ask.question),)),),
        message=Message(f"msg-{chat_id}", Role.AGENT, (Part(text=text),)),
        usage=settled.usage,
    )


async def _settle(running: RunningTurn) -> SettledTurn:
    return await asyncio.shield(running.settled)


async def _stream(
    identity: Identity, name: str, running: RunningTurn, settled: "asyncio.Future[SettledTurn]"
) -> AsyncIterator[Frame | None]:
    """The one data frame of a stream, after keep-alives: an agent of a team answers in one piece."""
    while not (await asyncio.wait({settled}, timeout=KEEPALIVE_S))[0]:
        yield None
    yield "", TaskNews(make_task(identity, name, running, settled.result()))
