"""The two routes to a venue: a session of the hub, or a server over HTTP.

The hub asks the session of an agent and not the published agent: a session takes 20 turns at once of one caller,
whatever the owner allows other callers of the agent, and access and budgets do not apply to the owner's own
network. The owner of the network owns the agent, or nothing is asked. The hub asks a server at an address that was
checked and pinned, and takes strict JSON alone.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from django.db.models import Subquery

from accounts.models import User
from agents.core.dispatch import CANCELED, Dispatcher
from agents.core.errors import Denied, FileGone, NotPublished, Offline, Unavailable
from agents.core.turn_course import NO_REPLY
from agents.core.types import Ask as TurnAsk
from agents.core.types import AskTarget, SettledTurn, TurnEnding
from agents.core.waiting import RunningTurn
from agents.links.remote.card import target_rules
from agents.models import Agent
from agents.models.choices import Outcome, Surface, TurnFailure
from agents.transcript.pieces import Part
from agnt.models import Venue
from agnt.service.asks.replies import VenueFailed, as_venue_failure, decline, find_data, read_data
from agnt.service.keys import derive_venue_secrets
from agnt.service.networks import VenueAsk
from clawbridge.agnt import Ask, CallFailed, Client, Endpoint, HttpAnswer, NoAnswer
from clawbridge.agnt.breakers import Blame, blame_late
from clawbridge.agnt.fields import CANCEL, CONFIRM, ErrorCode, Json
from clawbridge.agnt.replies import HOW_TO_CANCEL, HOW_TO_REPLY
from kit import strict_json
from kit.safe_http import NotPublic, NotSent, StreamingHttp, TooMuch, Unanswered
from kit.tasks import TaskSet

# Ends of turns that the venue did not cause: its agent may be healthy.
NOT_OF_VENUE = frozenset(
    {TurnFailure.SHUTDOWN, TurnFailure.NOT_RECORDED, TurnFailure.CANCELED, TurnFailure.HALTED}
)
TURN_WAITS_LONGER_S = 1.0  # so that the ask cancels the turn, which tells the agent: a timeout does not
NO_ANSWER = "want an answer within ttl_ms"
HOW_TO = {CONFIRM: HOW_TO_REPLY, CANCEL: HOW_TO_CANCEL}
HOW_TO_ANSWER = "Answer with one data part, or with JSON alone: the object that is the result."
NO_PAUSE = float("inf")  # before a second try: there is none, the caller repeats its envelope


class AgentRoute(msgspec.Struct, frozen=True):
    """The session of a venue's agent, and the login of the user that the hub asks as."""

    target: AskTarget
    login: str


def find_agent(asked: VenueAsk) -> AgentRoute | None:
    """The way to a venue's agent; None: it is no published agent of the network's owner."""
    found = Agent.objects.published().filter(pk=asked.venue.agent_id or 0, owner=asked.network.owner_id)
    logins = User.objects.filter(pk=asked.network.service_user_id).values("login")
    row = found.annotate(login=Subquery(logins)).values_list("session_id", "handle", "login").first()
    return AgentRoute(AskTarget(None, row[0], row[1]), row[2]) if row else None


def write_question(venue: Venue, ask: Ask) -> str:
    """An envelope as the text of a question."""
    return "\n".join(
        [
            f"{ask.intent} for {venue.name}, from the outside program {_name_program(ask)}:",
            msgspec.json.encode(ask.payload).decode(),
            HOW_TO.get(ask.intent, HOW_TO_ANSWER),
        ]
    )


def _name_program(ask: Ask) -> str:
    """The names of the programs that ask. The hub verified the last hop alone: the first sender may be another."""
    return f"{ask.origin}, passed on by {ask.via[-1].agent}" if ask.via else ask.sender


class VenueAgents:
    """Asks agents through the dispatcher of this process."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._starting = TaskSet()

    async def ask(self, route: AgentRoute, asked: VenueAsk, ask: Ask, envelope: Json, deadline: float) -> Json:
        """The payload of an agent's answer to an envelope, which the agent gets as text and as a data part.

        If the answer does not come in time, or the caller cancels, the dispatcher tells the agent, if it can.

        Raises:
            VenueFailed: there is none.
        """
        text = write_question(asked.venue, ask)
        running = await self._start(
            TurnAsk(
                chat_id=asked.chat_id,
                target=route.target,
                caller_id=asked.network.service_user_id,
                caller_login=route.login,
                surface=Surface.AGNT,
                question=text,
                wait_s=_left_s(deadline) + TURN_WAITS_LONGER_S,
                parts=(Part(text=text), Part(data=envelope, media_type="application/json")),
            ),
            deadline,
        )
        had_s, ending = _left_s(deadline), CANCELED
        try:
            if not await running.ended(had_s):
                ending = NO_REPLY
                blame = blame_late(had_s, time.monotonic() - deadline)
                raise VenueFailed(ErrorCode.TTL_EXCEEDED, NO_ANSWER, blame=blame)
        finally:
            self._dispatcher.cancel(running.ask.chat_id, ending)  # does nothing once the turn has ended
        try:
            return read_data(_find_data(running, await running.settled), ask)
        except VenueFailed as failed:
            # The turn ended at its own deadline, which is that of the ask.
            if failed.code == ErrorCode.TTL_EXCEEDED:
                failed.blame = blame_late(had_s - _left_s(deadline))
            raise

    async def _start(self, turn: TurnAsk, deadline: float) -> RunningTurn:
        """Start a turn. One that starts too late is canceled then: cancelling the admission could lose it.

        Raises:
            VenueFailed: it was not admitted, or not in time.
        """
        starting = self._starting.keep(self._dispatcher.ask(RunningTurn(turn)), name="ask venue")
        ending: TurnEnding | None = CANCELED
        try:
            done, _ = await asyncio.wait({starting}, timeout=_left_s(deadline))
            if not done:
                ending = NO_REPLY
                raise VenueFailed(ErrorCode.TTL_EXCEEDED, "the hub did not admit the turn in time")
            ending = None
        finally:
            if ending is not None:
                starting.add_done_callback(lambda started: self._cancel_started(started, ending))
        try:
            return starting.result()
        except Denied as denied:
            # An agent that is offline is a failure of its venue; no other refusal says anything about the venue's
            # health.
            blame = Blame.VENUE if isinstance(denied, Offline) else Blame.UNKNOWN
            rule = f"the agent takes no turn: {denied.reason}"
            raise VenueFailed(ErrorCode.VENUE_UNREACHABLE, rule, blame=blame, was_sent=False) from None
        except (NotPublished, FileGone, Unavailable) as refused:
            rule = f"the agent takes no turn: {type(refused).__name__}"
            raise VenueFailed(ErrorCode.VENUE_UNREACHABLE, rule, was_sent=False) from None

    def _cancel_started(self, started: "asyncio.Task[RunningTurn]", ending: TurnEnding) -> None:
        if not started.cancelled() and started.exception() is None:
            self._dispatcher.cancel(started.result().ask.chat_id, ending)


def _find_data(running: RunningTurn, settled: SettledTurn) -> Json:
    """The data of a reply.

    Raises:
        VenueFailed: the turn ended without one.
    """
    if settled.outcome is Outcome.COMPLETED and not settled.reason:
        return find_data(running.pieces, settled.text)
    if settled.reason == TurnFailure.TIMEOUT:
        raise VenueFailed(ErrorCode.TTL_EXCEEDED, NO_ANSWER)
    # The agent asks back, and no caller is there to answer; or the turn failed.
    if settled.reason == TurnFailure.REJECTED:
        raise decline(settled.own_words)
    rule = f"the agent's turn ended without an answer: {settled.reason or settled.outcome}"
    blame = Blame.UNKNOWN if settled.reason in NOT_OF_VENUE else Blame.VENUE
    raise VenueFailed(ErrorCode.VENUE_UNREACHABLE, rule, blame=blame, said=settled.text)


def _left_s(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


class GuardedTransport:
    """A `Transport` under the rules of a `StreamingHttp`, whose owner closes it."""

    def __init__(self, http: StreamingHttp) -> None:
        self._http = http

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, max_bytes: int) -> HttpAnswer:
        """See `Transport`."""
        sent = {**headers, "Content-Length": str(len(body))}
        try:
            async with self._http.stream("POST", url, headers=sent, body=body) as incoming:
                return HttpAnswer(incoming.status, incoming.headers, await incoming.read(max_bytes))
        except NotSent as refused:
            raise NoAnswer(str(refused), was_sent=False, retryable=not isinstance(refused, NotPublic)) from None
        except TooMuch as much:
            raise NoAnswer(str(much), was_sent=True, retryable=False) from None
        except Unanswered as failure:
            raise NoAnswer(str(failure), was_sent=True) from None


class VenueServers:
    """Asks servers by the client of AGNT, as the operator's settings allow."""

    def __init__(self) -> None:
        self._http = StreamingHttp(target_rules())
        # Without breakers of its own: every ask has passed the stored ones.
        self._client = Client(GuardedTransport(self._http), None, parse=parse_strictly, first_pause_s=NO_PAUSE)

    async def ask(self, venue: Venue, ask: Ask, deadline: float) -> Json:
        """The payload of a server's answer to an envelope.

        Raises:
            VenueFailed: there is none.
        """
        endpoint = Endpoint(venue.url, secret=derive_venue_secrets(venue).signing)
        try:
            within_s = max(0.0, deadline - time.monotonic())
            return (await self._client.ask(endpoint, ask, within_s=within_s)).payload
        except CallFailed as failed:
            raise as_venue_failure(failed) from None

    def close(self) -> None:
        """Stop resolving host names."""
        self._http.close()


def parse_strictly(body: bytes) -> Any:
    """The value of an answer's body, for `Client`.

    Raises:
        ValueError: it is not JSON that a sound program sends.
    """
    try:
        return strict_json.read(body)
    except strict_json.UnreadableText as unreadable:
        raise ValueError(str(unreadable)) from None
