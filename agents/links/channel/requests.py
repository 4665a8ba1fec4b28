"""Requests of agents to the hub: lists of agents and peers, and questions to others (sections 4.2, 4.3 and 6.3).

Always on behalf of a user: its driver while it works on a question, else its owner. Names are looked up
with their access, and asks go through the core like any other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from accounts.authn import Identity
from agents.core.ask_starter import NOT_ASKED, TURN_WAIT_S, AskingUser, AskStarter
from agents.core.errors import Unavailable
from agents.core.ports import Notifier, RouteOrigin
from agents.core.types import AskSource, AskTarget, SettledTurn
from agents.core.waiting import RunningTurn, text_with_left_out
from agents.links.channel import refusals
from agents.links.channel.driving import Driver
from agents.links.channel.frames import (
    AgentChannelFrame,
    AgentsRequest,
    AgentsResponse,
    DispatchRequest,
    ListedPeer,
    PeersRequest,
    PeersResponse,
    ProbeRequest,
    ProbeResponse,
    Request,
    RouteReply,
    RouteRequest,
    RouteResponse,
    encode,
    now,
)
from agents.links.channel.payloads import size_of
from agents.links.channel.refusals import (
    as_reply,
    askable_agents,
    askable_peers,
    failure_text,
    find_routed,
    get_agent,
    named_in,
    refusal_text,
)
from agents.models.choices import Outcome, Surface
from agents.transcript.announcements import send_frame_to_agent
from agents.transcript.mentions import MAX_FILES, mentions
from kit.async_db import db_call
from kit.durations import seconds
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

AT_ONCE = 20  # requests of one agent
PROBE_WAIT_S = seconds(30.0)
MAX_PROBED = 50
MAX_PROMPT_BYTES = 1_048_576
READING_AT_ONCE = 2  # a flood of lists must not starve the rest of the process of pool threads
TOLD = "(tell mode — no reply)"
ENDED = "(the turn ended without a reply)"

Find = Callable[[str, int], AskTarget]  # by a name, for a user; or NoSuchTarget, NotAllowed, AmbiguousPeer
SendFrame = Callable[[AgentChannelFrame], Awaitable[None]]
Start = Callable[[Coroutine[Any, Any, None], str], None]
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ActingFor:
    """The user on whose behalf an agent acts now.

    `session_id`: its own session; `isolated`: it may reach no other.
    """

    asker: AskingUser
    session_id: int
    isolated: bool = False

    def is_for(self, owner_id: int) -> bool:
        """True if it acts for that owner, and no stranger passed the question on."""
        return self.asker.user_id == owner_id and not self.asker.passed_by_stranger


def find_acting_for(driver: Driver | None, owner: Identity, session_id: int) -> ActingFor:
    """Find the user on whose behalf an agent acts: its driver, else its owner."""
    if driver is None:
        return ActingFor(AskingUser(user_id=owner.user_id, login=owner.login, chain=(session_id,)), session_id)
    asker = AskingUser(
        user_id=driver.user_id,
        login=driver.login,
        chain=driver.chain,
        traceparent=driver.traceparent,
        parent=driver.turn,
        passed_by_stranger=not driver.is_own,
    )
    return ActingFor(asker, session_id, driver.isolated)


@dataclass(frozen=True, slots=True)
class AgentQuestion:
    """A question of an agent to one session or to many."""

    text: str
    surface: Surface
    wait_s: float = TURN_WAIT_S
    tells: bool = False

    @property
    def flaw(self) -> str:
        """The reason why the target cannot be asked; empty when it can."""
        if not self.text.strip():
            return "the prompt is empty"
        if "\0" in self.text:
            return "the prompt holds a NUL character"
        if size_of(self.text) > MAX_PROMPT_BYTES:
            return f"the prompt is over {MAX_PROMPT_BYTES} bytes"
        return f"the prompt names over {MAX_FILES} files" if len(mentions(self.text)) > MAX_FILES else ""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request of an agent, and where its answers go until the agent is `gone`.

    `in_order`: held while a request of the agent finds its target and is admitted, so that the questions of one
    agent reach each target in the order in which they were sent. The request holds the order of admission, and
    waits for no reply meanwhile.
    """

    behalf: ActingFor
    send_frame: SendFrame
    gone: asyncio.Future[None]
    in_order: asyncio.Lock

    async def outcome(self, running: RunningTurn) -> SettledTurn | None:
        """The end of a turn; None when the agent left before."""
        waited: list[asyncio.Future[Any]] = [running.settled, self.gone]
        # `wait` cancels neither future: other requests wait for `gone` too,
        # and the turn belongs to the dispatcher.
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        return running.settled.result() if running.settled.done() else None


@dataclass(frozen=True, slots=True)
class StartedQuestion:
    """A started question with the name of its target; or its `refusal`."""

    name: str
    running: RunningTurn | None = None
    refusal: str = ""


class ReplyNotes:
    """Shows agents on `/channel` the answers that they did not wait for. See `agents.core.ports.Notifier`."""

    def __init__(self) -> None:
        self._noting = asyncio.Lock()

    async def route_reply(
        self, session_id: int, *, chat_id: str, from_name: str, text: str, origin: RouteOrigin
    ) -> None:
        """Show an answer to a session's agent. See `agents.core.ports.Notifier`."""
        reply = RouteReply(route_id=chat_id, from_name=from_name, text=text, ts=now(), origin=origin)
        async with self._noting:  # in the order in which the replies came
            await db_call(send_frame_to_agent)(session_id, encode(reply))


class Requests:
    """Carries out what the agents of a process ask for."""

    def __init__(self, asking: AskStarter, notifier: Notifier) -> None:
        self._asking = asking
        self._notifier = notifier
        self._reading = asyncio.Semaphore(READING_AT_ONCE)
        self._reporting = TaskSet()

    async def close(self) -> None:
        """Stop reporting on questions that agents did not wait for."""
        await self._reporting.cancel()

    async def serve(self, request: Request, context: AgentRequest) -> None:
        """Answer a request by one or more frames."""
        try:
            await self._serve(request, context)
        except Exception:
            logger.exception("request.failed", extra={"frame": type(request).__name__})
            login = context.behalf.asker.login
            for frame in refusals.refuse(request, "unavailable", Unavailable.text, login=login):
                await context.send_frame(frame)

    async def _serve(self, request: Request, context: AgentRequest) -> None:
        asker = context.behalf.asker
        match request:
            case AgentsRequest():
                agents = await self._read(askable_agents, asker.user_id, request.q or "")
                await context.send_frame(AgentsResponse(request.correlation_id, asker.login, agents))
            case PeersRequest():
                await context.send_frame(PeersResponse(request.correlation_id, await self._peers(context)))
            case RouteRequest():
                await self._pass_on(request, find_routed, Surface.ROUTE, context)
            case DispatchRequest():
                await self._pass_on(request, get_agent, Surface.DISPATCH, context)
            case ProbeRequest():
                await self._probe(request, context)

    async def _peers(self, context: AgentRequest) -> list[ListedPeer]:
        return await self._read(askable_peers, context.behalf.asker.user_id, context.behalf.session_id)

    async def _pass_on(
        self, request: RouteRequest | DispatchRequest, find: Find, surface: Surface, context: AgentRequest
    ) -> None:
        question = AgentQuestion(request.prompt, surface, tells=request.mode == "tell")
        async with context.in_order:
            begun = await self._begin(named_in(request), find, question, context)
        reply = (begun.refusal or TOLD) if question.tells else await _reply(begun, context)
        await context.send_frame(RouteResponse(request.correlation_id, begun.name, reply))
        if question.tells and begun.running is not None:
            report = self._report(begun.name, begun.running, context.behalf.session_id)
            self._reporting.start(report, name="report of a tell")

    async def _report(self, name: str, running: RunningTurn, session_id: int) -> None:
        """Send the agent the answer to a question that it did not wait for, at its current connection."""
        # All that wait for this turn share the future: cancelling this report must not cancel it for them.
        settled = await asyncio.shield(running.settled)
        text = _spoken(running, settled, name) or ENDED
        await self._notifier.route_reply(
            session_id, chat_id=running.turn.ask.chat_id, from_name=name, text=text, origin="mcp"
        )

    async def _probe(self, request: ProbeRequest, context: AgentRequest) -> None:
        """Ask all at once; each answer is told as it comes."""
        question = AgentQuestion(request.prompt, Surface.PROBE, wait_s=PROBE_WAIT_S)
        async with context.in_order:
            named = request.peers
            if named is None:
                named = [one.login for one in await self._peers(context) if one.online]
            wanted = list(dict.fromkeys(name.removeprefix("@") for name in named))[:MAX_PROBED]
            asked = await asyncio.gather(*(self._begin(name, find_routed, question, context) for name in wanted))

        async def answer(begun: StartedQuestion) -> None:
            await context.send_frame(
                ProbeResponse(request.correlation_id, begun.name, await _reply(begun, context))
            )

        await asyncio.gather(*map(answer, asked))
        await context.send_frame(ProbeResponse(request.correlation_id, None, None, done=True))

    async def _begin(
        self, name: str, find: Find, question: AgentQuestion, context: AgentRequest
    ) -> StartedQuestion:
        """Ask whom the name means; the caller holds `context.in_order`."""
        asker = context.behalf.asker
        if flaw := question.flaw:
            return StartedQuestion(name, refusal=as_reply(flaw))
        try:
            target = await self._read(find, name, asker.user_id)
            running = await self._asking.ask(
                asker,
                target,
                question.text,
                surface=question.surface,
                wait_s=question.wait_s,
                tells=question.tells,
                source=AskSource(context.behalf.session_id, reports=question.tells, peer_login=target.handle),
                files=mentions(question.text),
            )
        except NOT_ASKED as refusal:
            return StartedQuestion(name, refusal=as_reply(refusal_text(refusal, name)))
        return StartedQuestion(target.handle, running)

    async def _read(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        async with self._reading:
            return await db_call(function)(*args, **kwargs)


class ConnectionRequests:
    """The requests of one connection: admitted in the order in which they came, and waited for all at once.

    A request stops waiting when the agent is gone.
    """

    def __init__(self, *, requests: Requests, start: Start, send_frame: SendFrame) -> None:
        self._requests = requests
        self._start = start
        self._send_frame = send_frame
        self._open = 0
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_order = asyncio.Lock()

    def take(self, request: Request, behalf: ActingFor) -> list[AgentChannelFrame]:
        """Begin to serve a request; the frames that refuse it when it may not be served now."""
        # Listing published agents stays allowed: it asks nothing of any other session.
        if behalf.isolated and not isinstance(request, AgentsRequest):
            return refusals.refuse(request, "isolated", refusals.ISOLATED, login=behalf.asker.login)
        if self._open >= AT_ONCE:
            return refusals.refuse(request, "too_many_requests", refusals.TOO_MANY, login=behalf.asker.login)
        self._open += 1
        self._start(self._serve(request, behalf), "request of an agent")
        return []

    def end(self) -> None:
        """The agent is gone.

        Asks for the agent's owner go on; the others end with the turns in which the agent made them.
        """
        if not self._gone.done():
            self._gone.set_result(None)

    async def _serve(self, request: Request, behalf: ActingFor) -> None:
        try:
            await self._requests.serve(request, AgentRequest(behalf, self._send_frame, self._gone, self._in_order))
        finally:
            self._open -= 1


async def _reply(begun: StartedQuestion, context: AgentRequest) -> str:
    """The reply; or `error: ` and why there is none; empty when the agent that asked left before."""
    if begun.running is None:
        return begun.refusal
    settled = await context.outcome(begun.running)
    return _spoken(begun.running, settled, begun.name) if settled is not None else ""


def _spoken(running: RunningTurn, settled: SettledTurn, name: str) -> str:
    if settled.outcome is Outcome.COMPLETED:
        return text_with_left_out(settled.text, running.pieces)
    return as_reply(failure_text(settled.reason, name, settled.own_words))
