"""Asks the agents of venues: each ask is a turn of the network's service user with the session of the agent.

The hub asks the session and not the published agent: a session takes 20 turns at once of one caller, whatever the
owner allows other callers of the agent, and access and budgets do not apply to the owner's own network. The owner
of the network owns the agent, or nothing is asked.
"""

import asyncio
import time

import msgspec
from django.db.models import Subquery

from accounts.models import User
from agents.core.dispatch import CANCELED, NO_REPLY, Dispatcher
from agents.core.errors import Denied, FileGone, NotPublished, Offline, Unavailable
from agents.core.types import Ask as TurnAsk
from agents.core.types import Ending, SettledTurn, Target
from agents.core.waiting import RunningTurn
from agents.models import Agent
from agents.models.choices import Failure, Outcome, Surface
from agents.transcript.pieces import Part
from agnt.client import Ask
from agnt.models import Venue
from agnt.service.asks.replies import VenueFailed, find_data, read_data, refuse_late, refuse_unreachable
from agnt.service.ports import VenueAsk
from agnt.wire.errors import EnvelopeRefused, ErrorCode, Json
from kit.ids import time_ordered
from kit.tasks import TaskSet

# Ends of turns that are not the doing of the venue: its agent may be well.
NOT_OF_VENUE = frozenset({Failure.SHUTDOWN, Failure.NOT_RECORDED, Failure.CANCELED, Failure.HALTED})
TURN_WAITS_LONGER_S = 1.0  # so that the ask cancels the turn, which tells the agent: a timeout does not
HOW_TO_CONFIRM = (
    'Answer with one data part, or with JSON alone: {"status": "confirmed"}, with slot_id, slot_time, party_size'
    ' or note if they differ from the request, or {"status": "slot_unavailable", "note": "why"}.'
)
HOW_TO_ANSWER = "Answer with one data part, or with JSON alone: the object that is the result."


class AgentRoute(msgspec.Struct, frozen=True):
    """The session of a venue's agent, and the login of the user that the hub asks as."""

    target: Target
    login: str


def find_agent(asked: VenueAsk) -> AgentRoute | None:
    """The way to a venue's agent; None: it is no published agent of the network's owner."""
    found = Agent.objects.published().filter(pk=asked.venue.agent_id or 0, owner=asked.key.owner_id)
    logins = User.objects.filter(pk=asked.key.service_user_id).values("login")
    row = found.annotate(login=Subquery(logins)).values_list("session_id", "handle", "login").first()
    return AgentRoute(Target(None, row[0], row[1]), row[2]) if row else None


def write_question(venue: Venue, ask: Ask) -> str:
    """An envelope as the text of a question."""
    is_order = ask.intent == "booking.confirm"
    return "\n".join(
        [
            f"{ask.intent} for {venue.name}, from the outside program {_name_program(ask)}:",
            msgspec.json.encode(ask.payload).decode(),
            HOW_TO_CONFIRM if is_order else HOW_TO_ANSWER,
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
                chat_id=time_ordered(),
                target=route.target,
                caller_id=asked.key.service_user_id,
                caller_login=route.login,
                surface=Surface.AGNT,
                question=text,
                wait_s=_left_s(deadline) + TURN_WAITS_LONGER_S,
                parts=(Part(text=text), Part(data=envelope, media_type="application/json")),
            ),
            deadline,
        )
        ending = CANCELED
        try:
            if not running.is_settled and not await running.until_settled.wait(_left_s(deadline)):
                ending = NO_REPLY
                raise refuse_late("no reply in time")
        finally:
            self._dispatcher.cancel(running.turn.ask.chat_id, ending)  # does nothing once the turn has ended
        return read_data(_find_data(running, await running.settled), ask)

    async def _start(self, turn: TurnAsk, deadline: float) -> RunningTurn:
        """Start a turn. One that starts too late is canceled then: cancelling the admission could lose it.

        Raises:
            VenueFailed: it was not admitted, or not in time.
        """
        starting = self._starting.keep(self._dispatcher.ask(turn, _nothing), name="ask venue")
        ending: Ending | None = CANCELED
        try:
            done, _ = await asyncio.wait({starting}, timeout=_left_s(deadline))
            if not done:
                ending = NO_REPLY
                raise refuse_late("not admitted in time")
            ending = None
        finally:
            if ending is not None:
                starting.add_done_callback(lambda started: self._cancel_started(started, ending))
        try:
            return starting.result()
        except Denied as denied:
            # An agent that is away is a connection that fails; all else says nothing of the venue's health.
            counts = True if isinstance(denied, Offline) else None
            raise refuse_unreachable(f"denied: {denied.reason}", counts=counts) from None
        except (NotPublished, FileGone, Unavailable) as refused:
            raise refuse_unreachable(type(refused).__name__, counts=None) from None

    def _cancel_started(self, started: "asyncio.Task[RunningTurn]", ending: Ending) -> None:
        if not started.cancelled() and started.exception() is None:
            self._dispatcher.cancel(started.result().turn.ask.chat_id, ending)


def _find_data(running: RunningTurn, settled: SettledTurn) -> Json:
    """The data of a reply.

    Raises:
        VenueFailed: the turn ended without one.
    """
    if settled.outcome is Outcome.COMPLETED and not settled.reason:
        return find_data(running.pieces, settled.text)
    if settled.reason == Failure.TIMEOUT:
        raise refuse_late("no reply in time")
    # The agent asks back, and no caller is there to answer; or the turn failed.
    why = settled.reason or str(settled.outcome)
    if settled.reason == Failure.REJECTED:
        raise VenueFailed(f"rejected: {settled.own_words}", EnvelopeRefused(*REJECTED), counts=False)
    raise refuse_unreachable(why, counts=None if settled.reason in NOT_OF_VENUE else True)


def _left_s(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


async def _nothing(settled: SettledTurn) -> None:
    """Does nothing: the asker waits for the end itself."""


REJECTED = (ErrorCode.SLOT_UNAVAILABLE, "the venue declined")
