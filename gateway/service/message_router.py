"""Sends the messages of clients to agents: finds the agent, and starts a turn, or stores the message for later."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from accounts.authn import Identity
from agents.core.ask_starter import NOT_ASKED, AskingUser, NoSuchTarget
from agents.core.dispatch import Dispatcher
from agents.core.errors import Busy, Offline, OverCap
from agents.core.types import AskTarget
from agents.core.waiting import RunningTurn
from agents.transcript.mentions import MAX_FILES, mentions
from gateway.models import Letter
from gateway.service.messages import (
    Addressee,
    FrameSender,
    MessageToAsk,
    NewMessage,
    RoutedMessage,
    find_addressee,
    question_of,
    route_message,
)
from gateway.service.pushes import Seats
from gateway.service.queue_delivery import QueueDelivery
from gateway.service.queue_rows import Obstacle, find_obstacle, priority_of, store_message
from gateway.service.registry import BUSY, ERROR
from gateway.service.seat import act_without_seat
from gateway.service.session_recording import RecordedTurn, Recording, SessionRecorder
from gateway.service.session_rows import check_sessions
from gateway.service.team_rules import AgentName, RulesCache, peer_error
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content, denied_error
from gateway.wire.frames import Envelope
from kit import trace
from kit.account_pace import ROUTED, AccountPaces
from kit.async_db import DbCalls
from kit.ids import time_ordered

READS_AT_ONCE = 4  # of the clients of this process

FollowReceipts = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that is under way as a turn, or waits in the queue as `stored`."""

    message: RoutedMessage
    running: RunningTurn | None = None
    stored: Letter | None = None

    @property
    def is_unsent(self) -> bool:
        """True if the gateway knows that nothing was sent to the agent, and the message does not wait."""
        running = self.running if self.stored is None else None
        return running is not None and running.is_settled and running.settled.result().is_unsent


class MessageRouter:
    """Sends the messages of this process's clients to agents. `read`: reads the database for a client."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        seats: Seats,
        queue: QueueDelivery,
        recorder: SessionRecorder,
        rules: RulesCache,
        paces: AccountPaces,
    ) -> None:
        self._dispatcher = dispatcher
        self._seats = seats
        self._recorder = recorder
        self._rules = rules
        self._paces = paces
        self.queue = queue
        self.read = DbCalls(READS_AT_ONCE)

    async def send(self, message: NewMessage, key: str, follow: FollowReceipts | None = None) -> SentMessage:
        """Start the turn of a message; store the message if its agent takes it later, and it may wait.

        `key`: the correlation id of its reply. `follow`: see `store`.

        Raises:
            FrameRefused: nothing was sent, nor stored.
        """
        if len(mentions(question_of(message).text)) > MAX_FILES:
            raise bad_content(f"the message names over {MAX_FILES} files")
        try:
            found, obstacle = await self._find(message)
            routed = route_message(message, found, key)
            if routed.place is not None and routed.place.session_id:
                await self.read(check_sessions, routed.place)
            is_overtaking = obstacle is Obstacle.EARLIER and routed.envelope.type == "message"
            if is_overtaking or found.status == BUSY:
                text = "the agent says that it is busy"
                refused = FrameRefused(GatewayErrorCode.AGENT_BUSY, text, reason="status_busy")
                return await self._store_or_refuse(
                    routed, denied_error(Busy()) if is_overtaking else refused, follow, is_wanted=is_overtaking
                )
            if found.status == ERROR:
                text = "the agent says that it has an error"
                raise FrameRefused(GatewayErrorCode.AGENT_ERROR, text, reason="status_error")
            try:
                running = await self._start(routed)
            except (Offline, Busy, OverCap) as denied:
                return await self._store_or_refuse(routed, denied_error(denied), follow)
        except NOT_ASKED as refusal:
            raise denied_error(refusal) from None
        return SentMessage(routed, running)

    async def _start(self, routed: RoutedMessage) -> RunningTurn:
        recording = Recording(self._recorder, routed, time_ordered())
        held = recording.hold_message()
        span = trace.follow(routed.behalf.asker.traceparent)
        ask = routed.ask(recording.key, span, (held,) if held is not None else ())
        running = await self._dispatcher.ask(RecordedTurn(ask, recording))
        await recording.add_message()
        return running

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
        message = NewMessage(envelope, behalf, FrameSender.of(identity), wait_s, question)
        running = (await self.send(message, message_id)).running
        assert running is not None  # noqa: S101  for the type checker: a message with a question is never stored
        return running

    async def put_in_inbox(self, message: NewMessage, follow: FollowReceipts | None) -> Letter:
        """Store a message that wants no response, whether or not its recipient is there.

        Raises:
            FrameRefused: its recipient has no inbox, or is not open to the sender, or there is no room.
        """
        found = await self.find_addressee(message.envelope.agent, message.behalf.asker.user_id)
        try:
            await self._check_allowed(found, message.sender)
        except NOT_ASKED as refusal:
            raise denied_error(refusal) from None
        if not found.has_inbox:
            text = "this agent has no inbox: it does not sit at this gateway"
            raise bad_content(text, field="agent", reason="no_inbox")
        return await self.store(route_message(message, found, ""), denied_error(Offline()), follow, is_wanted=True)

    async def find_addressee(self, name: str, user_id: int) -> Addressee:
        """The agent of a name for a user.

        Raises:
            FrameRefused: there is none that the user may ask.
        """
        try:
            return await self.read(find_addressee, name, user_id)
        except NOT_ASKED as refusal:
            raise denied_error(refusal) from None

    async def store(
        self,
        routed: RoutedMessage,
        refused: FrameRefused,
        follow: FollowReceipts | None,
        *,
        is_wanted: bool = False,
        is_recorded: bool = False,
    ) -> Letter:
        """Put a message into the queue of its agent. `is_recorded`: it is in its sessions already.

        `follow`: pushes the receipts of the sender to it from now on. `is_wanted`: see `store_message`.

        Raises:
            FrameRefused: there is no room; or the message may not wait, then it is `refused`.
        """
        recipient_id = routed.target.session_id
        self.queue.expect(recipient_id)
        recording = Recording(self._recorder, routed, time_ordered())
        held = None if is_recorded else recording.hold_message()
        try:
            if follow is not None:  # before the message is stored: a receipt may come at once
                await follow()
            stored = await self.read(store_message, routed, is_wanted=is_wanted, held=held)
        except NOT_ASKED as refusal:
            raise denied_error(refusal) from None
        if stored is None:
            raise refused
        await recording.add_message()
        self.queue.wake(recipient_id)
        return stored

    async def _store_or_refuse(
        self,
        routed: RoutedMessage,
        refused: FrameRefused,
        follow: FollowReceipts | None,
        *,
        is_wanted: bool = False,
    ) -> SentMessage:
        if not routed.may_wait:
            raise refused
        return SentMessage(routed, stored=await self.store(routed, refused, follow, is_wanted=is_wanted))

    async def _find(self, message: NewMessage) -> tuple[Addressee, Obstacle]:
        """The addressee of a message, and the reason why it waits although its recipient may be connected.

        Raises:
            NoSuchTarget, NotAllowed, AmbiguousPeer: there is none that the user may ask, and the token is for.
            FrameRefused: 5004, by the list of peers of one of both.
        """
        asker = message.behalf.asker
        if here := self._find_here(message.envelope.agent, asker):
            found, obstacle = here, Obstacle.NONE
        else:
            if message.sender.seat:  # when an agent leaves, hundreds of messages to it may be looked up at once
                await self._paces.of(message.sender.user_id).keep(ROUTED)
            found, obstacle = await self.read(_find_route, message)
        await self._check_allowed(found, message.sender)
        return found, obstacle

    async def _check_allowed(self, found: Addressee, sender: FrameSender) -> None:
        """Check that the sender's token is for an agent, and that the lists of peers of both allow a message.

        Raises:
            NoSuchTarget: the token is for another agent.
            FrameRefused: 5004, by a list.
        """
        if sender.only_agent and (not found.target.agent_id or found.target.handle.lower() != sender.only_agent):
            raise NoSuchTarget
        own = AgentName(sender.user_id, sender.login, sender.seat)
        # A client without a seat is in no list.
        if own.name and not await self._rules.may_message(own, found.name):
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


def _find_route(message: NewMessage) -> tuple[Addressee, Obstacle]:
    """The addressee of a message, and the reason why it waits although its recipient may be connected."""
    user_id = message.behalf.asker.user_id
    found = find_addressee(message.envelope.agent, user_id)
    if not found.has_inbox:
        return found, Obstacle.NONE
    shown = found.name_of(message.sender)
    return found, find_obstacle(found.target.session_id, user_id, shown, priority_of(message.envelope))
