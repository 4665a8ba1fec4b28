"""The interface of handlers to the rest: the connection that sent the frame, and the parts of its process."""

import time
from dataclasses import dataclass
from typing import Protocol

from accounts.authn import Identity
from agents.core.dispatch import Dispatcher
from agents.core.post import Post
from agents.links.channel.driving import ActingFor
from agents.links.sockets import SocketLink
from agents.transcript.announcements import SurfaceMessage
from gateway.service import pushes, triad
from gateway.service.frame_log import FrameLog, FrameNote
from gateway.service.health import HealthReport
from gateway.service.message_router import MessageRouter
from gateway.service.messages import FrameSender
from gateway.service.open_messages import OpenMessages, RecentMessages
from gateway.service.pushes import Channels, Seats
from gateway.service.queue_delivery import QueueDelivery
from gateway.service.seat import Seat, act_without_seat
from gateway.service.session_recording import SessionRecorder
from gateway.service.status_feed import StatusFeed
from gateway.service.team_rules import RulesCache
from gateway.service.triad import Participant, Triad
from gateway.wire.errors import FrameRefused, GatewayErrorCode, forbidden
from gateway.wire.frames import Envelope, Json, answer_frame
from gateway.wire.protocol import SIGN_IN
from kit.account_pace import PUSH, AccountPace, AccountPaces


@dataclass(frozen=True, slots=True)
class Gateway:
    """The parts of one process that serve `a2a-v1`."""

    link: SocketLink
    seats: Seats
    router: MessageRouter
    recent: RecentMessages
    channels: Channels
    triad: Triad
    statuses: StatusFeed
    recorder: SessionRecorder
    rules: RulesCache
    frame_log: FrameLog
    health: HealthReport
    paces: AccountPaces

    @classmethod
    def build(
        cls,
        *,
        process_id: str,
        link: SocketLink,
        dispatcher: Dispatcher,
        post: Post,
        is_alone: bool,
        health: HealthReport,
        paces: AccountPaces,
    ) -> "Gateway":
        """Put the parts together. `is_alone`: there are no other processes."""
        seats_here = Seats(process_id, post)
        subscribers = Channels(process_id, post, is_alone=is_alone)
        recorder = SessionRecorder(process_id)
        stored_messages = QueueDelivery(process_id, dispatcher, subscribers, recorder)
        rules = RulesCache(time.monotonic)
        router = MessageRouter(dispatcher, seats_here, stored_messages, recorder, rules, paces)
        return cls(
            link=link,
            seats=seats_here,
            router=router,
            recent=RecentMessages(time.monotonic),
            channels=subscribers,
            triad=Triad(process_id, subscribers),
            statuses=StatusFeed(subscribers, router, time.monotonic),
            recorder=recorder,
            rules=rules,
            frame_log=FrameLog(),
            health=health,
            paces=paces,
        )

    async def keep_pace(self, owner_id: int, recipients: int) -> None:
        """Wait until the owner may push a frame to so many. Meanwhile no frame of the sender is read."""
        await self.paces.of(owner_id).keep(PUSH * recipients)

    def take(self, message: SurfaceMessage) -> None:
        """A message for the gateway from another process, or from a thread of this one."""
        if message.surface == pushes.CHANNELS_SURFACE:
            self.channels.take(message.body)
        elif message.surface == pushes.SEATS_SURFACE:
            self.seats.take(message.body)
        elif message.surface == triad.SURFACE:
            self.triad.take(message.body)

    async def close(self) -> None:
        """Write what waits to be written."""
        await self.recorder.close()
        await self.frame_log.close()


class TeamClient(Participant, Protocol):
    """A connection as handlers see it. `seat`: None, the client is no agent. `client_id`: unguessable.

    `note`: the audit of the frame that is handled now. `pace`: of the account of a socket; none limits a request
    over HTTP, which has limits of its own.
    """

    gateway: Gateway
    client_id: str
    messages: OpenMessages
    note: FrameNote
    pace: AccountPace
    seat: Seat | None

    @property
    def signed_in(self) -> Identity | None:
        """The user and token; None before it signed in."""

    @property
    def sender(self) -> FrameSender:
        """The sender of its messages."""

    async def reply(self, envelope: Envelope, type_name: str, content: Json) -> None:
        """Answer a frame: by one with its correlation id."""
        await self.send_frame(answer_frame(envelope, type_name, content))

    @property
    def identity(self) -> Identity:
        """The signed-in user and token.

        Raises:
            FrameRefused: 5001.
        """
        if self.signed_in is None:
            raise FrameRefused(GatewayErrorCode.AUTH_REQUIRED, SIGN_IN)
        return self.signed_in

    @property
    def seat_name(self) -> str:
        """The name of the agent; empty for a client without a seat."""
        return self.seat.name if self.seat is not None else ""

    def find_behalf(self, envelope: Envelope) -> ActingFor:
        """The party on whose behalf the client acts: the sender of the message on which its agent works, else the
        token's user.

        Raises:
            FrameRefused: 5001.
        """
        identity = self.identity
        if self.seat is None:
            return act_without_seat(identity.user_id, identity.login)
        owner = ActingFor.owner(identity.user_id, identity.login, self.seat.session_id)
        return self.seat.acting_for(owner, envelope)

    def get_behalf(self, envelope: Envelope) -> ActingFor:
        """The same as `find_behalf`, for messages that reach other agents.

        Raises:
            FrameRefused: 5001; 5004 while it is isolated.
        """
        behalf = self.find_behalf(envelope)
        if behalf.isolated:
            text = "while this agent works for another caller it reaches no other agent"
            raise forbidden(text, reason="isolated")
        return behalf
