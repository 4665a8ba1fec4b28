"""The interface of handlers to the rest: the connection that sent the frame, and the parts of its process."""

import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from accounts.authn import Identity
from agents.core.dispatch import Dispatcher
from agents.core.post import Post
from agents.links.channel.requests import ActingFor
from agents.links.sockets import SocketLink
from agents.transcript.announcements import SurfaceMessage
from gateway.service import channels
from gateway.service.channels import Channels, Subscriber
from gateway.service.frame_log import FrameLog, FrameNote
from gateway.service.letters.letter_delivery import LetterDelivery
from gateway.service.messages.addressing import Sender
from gateway.service.messages.messages import MessageRouter
from gateway.service.messages.open_messages import OpenMessages
from gateway.service.messages.status_feed import StatusFeed
from gateway.service.seats import seats
from gateway.service.seats.seat import Seat
from gateway.service.seats.seats import Seats
from gateway.service.sessions.recording import SessionRecorder
from gateway.service.team.health import HealthReport
from gateway.service.team.team_rules import TeamRules
from gateway.service.triad import triad
from gateway.service.triad.triad import Triad
from gateway.wire.frames import Envelope, Json
from gateway.wire.protocol import GatewayProtocol


@dataclass(frozen=True, slots=True)
class Gateway:
    """The parts of one process that serve `a2a-v1`."""

    link: SocketLink
    seats: Seats
    router: MessageRouter
    channels: Channels
    triad: Triad
    statuses: StatusFeed
    recorder: SessionRecorder
    rules: TeamRules
    frame_log: FrameLog
    health: HealthReport

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
    ) -> "Gateway":
        """Put the parts together. `is_alone`: there are no other processes."""
        seats_here = Seats(process_id, post)
        subscribers = Channels(process_id, post, is_alone=is_alone)
        recorder = SessionRecorder(process_id)
        letters = LetterDelivery(process_id, dispatcher, subscribers, recorder)
        rules = TeamRules(time.monotonic)
        router = MessageRouter(dispatcher, seats_here, letters, recorder, rules)
        return cls(
            link=link,
            seats=seats_here,
            router=router,
            channels=subscribers,
            triad=Triad(process_id, subscribers),
            statuses=StatusFeed(subscribers, router, time.monotonic),
            recorder=recorder,
            rules=rules,
            frame_log=FrameLog(),
            health=health,
        )

    def take(self, message: SurfaceMessage) -> None:
        """A message for the gateway from another process, or from a thread of this one."""
        if message.surface == channels.SURFACE:
            self.channels.take(message.body)
        elif message.surface == seats.SURFACE:
            self.seats.take(message.body)
        elif message.surface == triad.SURFACE:
            self.triad.take(message.body)

    async def close(self) -> None:
        """Write what waits to be written."""
        await self.recorder.close()
        await self.frame_log.close()


class Client(Subscriber, Protocol):
    """A connection as handlers see it. `seat`: None, it is no agent. `client_id`: unguessable.

    `note`: the audit of the frame that is handled now.
    """

    gateway: Gateway
    client_id: str
    protocol: GatewayProtocol
    messages: OpenMessages
    note: FrameNote
    seat: Seat | None

    @property
    def identity(self) -> Identity:
        """The signed-in user and token.

        Raises:
            FrameRefused: 5001.
        """

    @property
    def is_over(self) -> bool:
        """Whether it is sent nothing any more."""

    @property
    def sender(self) -> Sender:
        """The sender of its messages."""

    def find_behalf(self, envelope: Envelope) -> ActingFor | None:
        """On whose behalf it acts: an agent that works on a message for its sender, else for the token's user.

        None: it is not signed in.
        """

    def get_behalf(self, envelope: Envelope) -> ActingFor:
        """As `find_behalf`, for what reaches other agents.

        Raises:
            FrameRefused: 5001; 5004 while it is isolated.
        """

    async def reply(self, envelope: Envelope, type_name: str, content: Json) -> None:
        """Answer a frame: by one with its correlation id."""

    async def say(self, frame: Json) -> None:
        """Send a frame."""

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Go on with something while further frames are read."""
