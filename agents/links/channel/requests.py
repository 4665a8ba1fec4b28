"""Requests of agents to the hub: lists of agents and peers, and questions to others (sections 4.2, 4.3 and 6.3).

Always on behalf of a user: its driver while it works on a question, else its owner. Names are looked up
with their access, and asks go through the core like any other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from agents.core.ask_starter import NOT_ASKED, TURN_WAIT_S, AskStarter
from agents.core.errors import Unavailable
from agents.core.ports import Notifier, RouteOrigin
from agents.core.types import AskSource, AskTarget, SettledTurn
from agents.core.waiting import RunningTurn, text_with_left_out
from agents.links.channel import refusals
from agents.links.channel.driving import ActingFor
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
from agents.transcript.pieces import size_of
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


class ReplyNotes:
    """Shows agents on `/channel` the answers to their questions for which they did not wait. See
    `agents.core.ports.Notifier`.
    """

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
    """What the requests of all agents of a process share: the core, a limit of reads at once, and reports on
    tells.
    """

    def __init__(self, asking: AskStarter, notifier: Notifier) -> None:
        self.asking = asking
        self._notifier = notifier
        self._reading = asyncio.Semaphore(READING_AT_ONCE)
        self._reporting = TaskSet()

    async def close(self) -> None:
        """Stop reporting on questions that agents did not wait for."""
        await self._reporting.cancel()

    async def read(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function that reads from the database."""
        async with self._reading:
            return await db_call(function)(*args, **kwargs)

    def start_report(self, name: str, running: RunningTurn, session_id: int) -> None:
        """Report the answer to a question for which an agent does not wait, at the agent's connection of that
        time.
        """
        self._reporting.start(self._report(name, running, session_id), name="report of a tell")

    async def _report(self, name: str, running: RunningTurn, session_id: int) -> None:
        # All coroutines that wait for this turn share the future: cancelling this report must not cancel the
        # future.
        settled = await asyncio.shield(running.settled)
        text = _spoken(running, settled, name) or ENDED
        await self._notifier.route_reply(
            session_id, chat_id=running.ask.chat_id, from_name=name, text=text, origin="mcp"
        )


@dataclass(frozen=True, slots=True)
class StartedQuestion:
    """A started question with the name of its target; or the `refusal` of a question that was not started."""

    name: str
    running: RunningTurn | None = None
    refusal: str = ""


class ConnectionRequests:
    """The requests of one connection, which are admitted in the order in which they came and wait concurrently.

    A request stops waiting when the agent's socket has ended. `_in_order`: held while a request finds its target
    and is admitted, and not while it waits for a reply: the questions of one agent reach each target in the order
    in which they were sent.
    """

    def __init__(self, *, requests: Requests, start: Start, send_frame: SendFrame) -> None:
        self._requests = requests
        self._start = start
        self._send_frame = send_frame
        self._open = 0
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_order = asyncio.Lock()

    def take(self, request: Request, behalf: ActingFor) -> list[AgentChannelFrame]:
        """Begin to serve a request; returns the frames that refuse it if it may not be served now."""
        # Listing published agents stays allowed: it asks nothing of any other session.
        if behalf.isolated and not isinstance(request, AgentsRequest):
            return refusals.refuse(request, "isolated", refusals.ISOLATED, login=behalf.asker.login)
        if self._open >= AT_ONCE:
            return refusals.refuse(request, "too_many_requests", refusals.TOO_MANY, login=behalf.asker.login)
        self._open += 1
        self._start(self._serve(request, behalf), "request of an agent")
        return []

    def end(self) -> None:
        """End the requests, because the agent's socket has ended.

        Asks for the agent's owner go on; asks for callers end with the turns in which the agent made them.
        """
        if not self._gone.done():
            self._gone.set_result(None)

    async def _serve(self, request: Request, behalf: ActingFor) -> None:
        try:
            await self._answer(request, behalf)
        except Exception:
            logger.exception("request.failed", extra={"frame": type(request).__name__})
            for frame in refusals.refuse(request, "unavailable", Unavailable.text, login=behalf.asker.login):
                await self._send_frame(frame)
        finally:
            self._open -= 1

    async def _answer(self, request: Request, behalf: ActingFor) -> None:
        """Answer a request by one or more frames."""
        asker = behalf.asker
        match request:
            case AgentsRequest():
                agents = await self._requests.read(askable_agents, asker.user_id, request.q or "")
                await self._send_frame(AgentsResponse(request.correlation_id, asker.login, agents))
            case PeersRequest():
                await self._send_frame(PeersResponse(request.correlation_id, await self._peers(behalf)))
            case RouteRequest():
                await self._pass_on(request, find_routed, Surface.ROUTE, behalf)
            case DispatchRequest():
                await self._pass_on(request, get_agent, Surface.DISPATCH, behalf)
            case ProbeRequest():
                await self._probe(request, behalf)

    async def _peers(self, behalf: ActingFor) -> list[ListedPeer]:
        return await self._requests.read(askable_peers, behalf.asker.user_id, behalf.session_id)

    async def _pass_on(
        self, request: RouteRequest | DispatchRequest, find: Find, surface: Surface, behalf: ActingFor
    ) -> None:
        tells = request.mode == "tell"
        async with self._in_order:
            begun = await self._begin(named_in(request), find, request.prompt, behalf, surface, tells=tells)
        reply = (begun.refusal or TOLD) if tells else await self._reply(begun)
        await self._send_frame(RouteResponse(request.correlation_id, begun.name, reply))
        if tells and begun.running is not None:
            self._requests.start_report(begun.name, begun.running, behalf.session_id)

    async def _probe(self, request: ProbeRequest, behalf: ActingFor) -> None:
        """Ask all peers at once; each answer is sent as it comes."""
        async with self._in_order:
            named = request.peers
            if named is None:
                named = [one.login for one in await self._peers(behalf) if one.online]
            wanted = list(dict.fromkeys(name.removeprefix("@") for name in named))[:MAX_PROBED]
            asked = await asyncio.gather(
                *(
                    self._begin(name, find_routed, request.prompt, behalf, Surface.PROBE, wait_s=PROBE_WAIT_S)
                    for name in wanted
                )
            )

        async def answer(begun: StartedQuestion) -> None:
            await self._send_frame(ProbeResponse(request.correlation_id, begun.name, await self._reply(begun)))

        await asyncio.gather(*map(answer, asked))
        await self._send_frame(ProbeResponse(request.correlation_id, None, None, done=True))

    async def _begin(
        self,
        name: str,
        find: Find,
        text: str,
        behalf: ActingFor,
        surface: Surface,
        *,
        wait_s: float = TURN_WAIT_S,
        tells: bool = False,
    ) -> StartedQuestion:
        """Find the target by its name and ask it; the caller of this method holds `_in_order`."""
        if flaw := _flaw(text):
            return StartedQuestion(name, refusal=as_reply(flaw))
        try:
            target = await self._requests.read(find, name, behalf.asker.user_id)
            running = await self._requests.asking.ask(
                behalf.asker,
                target,
                text,
                surface=surface,
                wait_s=wait_s,
                tells=tells,
                source=AskSource(behalf.session_id, reports=tells, peer_login=target.handle),
                files=mentions(text),
            )
        except NOT_ASKED as refusal:
            return StartedQuestion(name, refusal=as_reply(refusal_text(refusal, name)))
        return StartedQuestion(target.handle, running)

    async def _reply(self, begun: StartedQuestion) -> str:
        """Wait for the reply; returns it, or `error: ` and the reason why there is none, or "" if the asking agent
        left before.
        """
        running = begun.running
        if running is None:
            return begun.refusal
        waited: list[asyncio.Future[Any]] = [running.settled, self._gone]
        # `wait` cancels neither future: other requests wait for `_gone` too,
        # and the turn belongs to the dispatcher.
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        return _spoken(running, running.settled.result(), begun.name) if running.settled.done() else ""


def _flaw(text: str) -> str:
    """The reason why no target can be asked this text; empty if it can be asked."""
    if not text.strip():
        return "the prompt is empty"
    if "\0" in text:
        return "the prompt holds a NUL character"
    if size_of(text) > MAX_PROMPT_BYTES:
        return f"the prompt is over {MAX_PROMPT_BYTES} bytes"
    return f"the prompt names over {MAX_FILES} files" if len(mentions(text)) > MAX_FILES else ""


def _spoken(running: RunningTurn, settled: SettledTurn, name: str) -> str:
    if settled.outcome is Outcome.COMPLETED:
        return text_with_left_out(settled.text, running.pieces)
    return as_reply(failure_text(settled.reason, name, settled.own_words))
