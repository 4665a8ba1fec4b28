"""Messages that clients send to agents: who they are for, and the turn of each."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from accounts.authn import Identity
from agents.core.ask_starter import NOT_ASKED, AskingUser, NoSuchTarget
from agents.core.dispatch import Dispatcher
from agents.core.errors import Busy, Offline, OverCap
from agents.core.types import Ask, AskSource, AskTarget
from agents.core.waiting import RunningTurn
from agents.models.choices import Surface
from agents.transcript.mentions import MAX_FILES, mentions
from agents.transcript.pieces import Part
from gateway.service.addressing import Addressee, FrameSender, NewMessage, RecentMessages, find_addressee
from gateway.service.pushes import Seats
from gateway.service.queue_delivery import QueueDelivery
from gateway.service.queued_messages import (
    Draft,
    Obstacle,
    StoredMessage,
    find_obstacle,
    priority_of,
    store_message,
)
from gateway.service.registry import BUSY, ERROR
from gateway.service.seat import act_without_seat
from gateway.service.seat_frames import text_of
from gateway.service.session_entries import Place, make_place
from gateway.service.session_recording import Recording, SessionRecorder
from gateway.service.session_rows import check_sessions
from gateway.service.team_rules import AgentName, RulesCache, peer_error
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content, denied_error
from gateway.wire.frames import Envelope
from kit import trace
from kit.async_db import DbCalls
from kit.clock import approximate_now
from kit.ids import time_ordered

READS_AT_ONCE = 4  # of the clients of this process


class MessageToAsk(NamedTuple):
    """The question to an agent; a seat gets the envelope instead of the parts and the task."""

    text: str
    parts: tuple[Part, ...]
    task_id: str = ""


class MessageMustWait(Exception):
    """A message cannot be sent now. `is_wanted`: it is stored, whether or not it may wait by itself."""

    def __init__(self, draft: Draft, refused: FrameRefused, *, is_wanted: bool = False) -> None:
        super().__init__()
        self.draft = draft
        self.refused = refused
        self.is_wanted = is_wanted


@dataclass(frozen=True, slots=True)
class BegunMessage:
    """A message that is under way. `draft`: how it waits if it was not delivered; None: it may not."""

    running: RunningTurn
    draft: Draft | None


class MessageRouter:
    """Asks what the clients of this process send to agents. `read`: reads the database for a client."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        seats: Seats,
        stored_messages: QueueDelivery,
        recorder: SessionRecorder,
        rules: RulesCache,
    ) -> None:
        self._dispatcher = dispatcher
        self._seats = seats
        self._recorder = recorder
        self._rules = rules
        self.queue = stored_messages
        self.recent = RecentMessages(time.monotonic)
        self.read = DbCalls(READS_AT_ONCE)

    async def begin(self, key: str, message: NewMessage, question: MessageToAsk | None = None) -> BegunMessage:
        """Start the turn of a message. `key`: its correlation id. `question`: by default that of its content.

        Raises:
            FrameRefused: nothing was sent.
            MessageMustWait: nothing was sent; it may be stored.
        """
        message = message.stamped()  # the delivered message and its entries in sessions have the same id
        envelope, behalf, sender = message.envelope, message.behalf, message.sender
        data = () if isinstance(envelope.said, str) else (Part(data=envelope.said),)
        text, parts, task_id = question or MessageToAsk(text_of(envelope), data)
        if len(mentions(text)) > MAX_FILES:
            raise bad_content(f"the message names over {MAX_FILES} files")
        asker, draft = behalf.asker, None
        try:
            found, obstacle = await self._find(message)
            place = _find_place(found, message)
            if place is not None and place.session_id:
                await self.read(check_sessions, place)
            if found.seat:  # it believes an envelope only without a task
                parts, task_id = sender.carry(envelope, found.target), ""
            if found.takes_stored_messages and envelope.type == "message":
                draft = _make_draft(key, message, found.target, parts, place)
                if obstacle is Obstacle.EARLIER:
                    raise MessageMustWait(draft, denied_error(Busy()), is_wanted=True)
            _check_status(found, draft)
            chat_id = time_ordered()
            recording = Recording(self._recorder, place, envelope, chat_id)
            held = recording.hold_message()
            ask = Ask(
                chat_id=chat_id,
                target=found.target,
                caller_id=asker.user_id,
                caller_login=asker.login,
                surface=Surface.GATEWAY,
                question=text,
                wait_s=message.wait_s,
                tells=not envelope.wants_response,
                source=AskSource(behalf.session_id, peer_login=found.target.handle) if behalf.session_id else None,
                chain=asker.chain,
                files=tuple(mentions(text)),
                message_id=envelope.id,
                context_id=envelope.session_id,
                task_id=task_id,
                parts=parts,
                traceparent=trace.follow(asker.traceparent),
                parent=asker.parent,
                passed_by_stranger=asker.passed_by_stranger,
                credential_id=sender.credential_id if found.is_own and not asker.passed_by_stranger else None,
                writes=(held.query,) if held is not None else (),
            )
            running = await self._dispatcher.ask(ask, recording.add_reply, recording.hold_reply)
            recording.running = running
        except NOT_ASKED as refusal:
            if draft is not None and isinstance(refusal, Offline | Busy | OverCap):
                raise MessageMustWait(draft, denied_error(refusal)) from None
            raise denied_error(refusal) from None
        await recording.add_message()
        return BegunMessage(running, draft)

    async def ask(
        self,
        identity: Identity,
        name: str,
        question: MessageToAsk,
        *,
        message_id: str,
        session_id: str,
        wait_s: float,
        traceparent: str,
    ) -> RunningTurn:
        """Ask an agent for the user of an HTTP request, who waits for the reply: the message is never stored.

        Raises:
            FrameRefused: nothing was sent.
        """
        parts = [msgspec.to_builtins(part) for part in question.parts]
        said = {"text": question.text, "parts": parts} if parts else question.text
        envelope = Envelope(
            type="message",
            content={"role": "user", "content": said},
            metadata={"requiresResponse": True, "correlationId": message_id},
            id=message_id,
            agent=name,
            session_id=session_id,
            extra={},
        )
        behalf = act_without_seat(identity.user_id, identity.login, traceparent)
        try:
            begun = await self.begin(
                message_id, NewMessage(envelope, behalf, FrameSender.of(identity), wait_s), question
            )
        except MessageMustWait as waits:
            raise waits.refused from None
        return begun.running

    async def find_addressee(self, name: str, user_id: int) -> Addressee:
        """The agent of a name for a user.

        Raises:
            FrameRefused: there is none that the user may ask.
        """
        try:
            return await self.read(find_addressee, name, user_id)
        except NOT_ASKED as refusal:
            raise denied_error(refusal) from None

    async def draft_message(self, message: NewMessage) -> Draft:
        """A message that wants no response, as a stored message.

        Raises:
            FrameRefused: its recipient has no inbox, or is not open to the sender.
        """
        message = message.stamped()
        try:
            found = await self.read(find_addressee, message.envelope.agent, message.behalf.asker.user_id)
            await self._check_allowed(found, message.sender)
        except NOT_ASKED as refusal:
            raise denied_error(refusal) from None
        if not found.takes_stored_messages:
            text = "this agent has no inbox: it does not sit at this gateway"
            raise bad_content(text, field="agent", reason="no_inbox")
        parts = message.sender.carry(message.envelope, found.target)
        return _make_draft("", message, found.target, parts, _find_place(found, message))

    async def _find(self, message: NewMessage) -> tuple[Addressee, Obstacle]:
        """The addressee of a message, and the reason why it waits although its recipient may be connected.

        Raises:
            NoSuchTarget, NotAllowed, AmbiguousPeer: there is none that the user may ask, and the token is for.
            FrameRefused: 5004, by the list of peers of one of both.
        """
        here = self._find_here(message.envelope.agent, message.behalf.asker)
        route = (here, Obstacle.NONE) if here else await self.read(_find_route, message)
        await self._check_allowed(route[0], message.sender)
        return route

    async def _check_allowed(self, found: Addressee, sender: FrameSender) -> None:
        """Check that the sender's token is for an agent, and that the lists of peers of both allow a message.

        Raises:
            NoSuchTarget: the token is for another agent.
            FrameRefused: 5004, by a list.
        """
        if sender.only_agent and (not found.target.agent_id or found.target.handle.lower() != sender.only_agent):
            raise NoSuchTarget
        own = AgentName(sender.user_id, sender.login, sender.seat)
        if own.name and not await self._rules.may_message(
            own, found.name
        ):  # a client without a seat is in no list
            raise peer_error()

    def _find_here(self, name: str, asker: AskingUser) -> Addressee | None:
        """A seat of the asker's own team, if this process holds it and no stored messages wait for it.

        Admission checks that it may be asked.
        """
        held = self._seats.find(asker.user_id, name)
        if held is None or not self.queue.has_none(held.seat.session_id):
            return None
        seat = held.seat
        target = AskTarget(None, seat.session_id, f"{asker.login}/{seat.name}")
        named = AgentName(asker.user_id, asker.login, seat.name)
        return Addressee(target, seat.name, is_own=True, name=named, status=seat.status)

    async def store(self, waits: MessageMustWait, *, is_recorded: bool = False) -> StoredMessage:
        """Store a message that could not be sent. `is_recorded`: it is in its sessions already.

        Raises:
            FrameRefused: it may not wait, or there is no room.
        """
        draft = waits.draft
        self.queue.expect(draft.recipient_id)
        recording = Recording(self._recorder, draft.place, draft.envelope, time_ordered())
        held = None if is_recorded else recording.hold_message()
        try:
            stored = await self.read(store_message, draft, is_wanted=waits.is_wanted, held=held)
        except NOT_ASKED as refusal:
            raise denied_error(refusal) from None
        if stored is None:
            raise waits.refused
        if stored.is_new:
            await recording.add_message()
        self.queue.wake(draft.recipient_id)
        return stored


def _find_place(found: Addressee, message: NewMessage) -> Place | None:
    """The sessions of the team in which a message belongs; None where the message leaves the team."""
    asker, sender = message.behalf.asker, message.sender
    # An agent that works for a caller of another owner acts for that caller: so does what it says.
    if not found.seat or not found.is_own or sender.login != asker.login:
        return None
    return make_place(asker.user_id, asker.login, sender.seat, found.seat, message.envelope.session_id)


def _find_route(message: NewMessage) -> tuple[Addressee, Obstacle]:
    """The addressee of a message, and the reason why it waits although its recipient may be connected."""
    user_id = message.behalf.asker.user_id
    found = find_addressee(message.envelope.agent, user_id)
    if not found.takes_stored_messages:
        return found, Obstacle.NONE
    shown = message.sender.shown_to(found.target)
    return found, find_obstacle(found.target.session_id, user_id, shown, priority_of(message.envelope))


def _make_draft(
    key: str, message: NewMessage, target: AskTarget, parts: tuple[Part, ...], place: Place | None
) -> Draft:
    envelope = message.envelope
    return Draft(
        recipient_id=target.session_id,
        behalf=message.behalf,
        sender=message.sender.shown_to(target),
        tells=message.sender.tells,
        correlation_id=key if envelope.wants_response else envelope.correlation_id,
        envelope=envelope,
        place=place,
        carried=parts[0].data,
        received_at=approximate_now(),
        wait_s=message.wait_s,
    )


def _check_status(found: Addressee, draft: Draft | None) -> None:
    """Check that an agent takes messages now, by the status that it reported.

    Admission refuses a message to an agent that is not connected, or that works for another caller.

    Raises:
        FrameRefused: 3003 while the agent is busy, 3004 while it has an error; nothing was sent.
        MessageMustWait: the agent is busy, and messages may wait for it.
    """
    if found.status == ERROR:
        raise FrameRefused(
            GatewayErrorCode.AGENT_ERROR, "the agent says that it has an error", reason="status_error"
        )
    if found.status == BUSY:
        refused = FrameRefused(GatewayErrorCode.AGENT_BUSY, "the agent says that it is busy", reason="status_busy")
        raise refused if draft is None else MessageMustWait(draft, refused)
