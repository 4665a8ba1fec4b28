"""What the handlers of frames may use: the connection that sent the frame, and the parts of its process."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from accounts.authn import Identity
from agents.links.channel.requests import ActingFor
from agents.links.sockets import SocketLink
from gateway.channels import Channels, Subscriber
from gateway.envelope import Envelope, Json
from gateway.frame_log import FrameLog, FrameNote
from gateway.messages import MessageRouter, OpenMessages, Sender
from gateway.protocol import GatewayProtocol
from gateway.seat import Seat
from gateway.signatures import Signatures


@dataclass(frozen=True, slots=True)
class Gateway:
    """The parts of one process that serve `a2a-v1`."""

    link: SocketLink
    router: MessageRouter
    channels: Channels
    frame_log: FrameLog
    signatures: Signatures

    def take(self, body: Any) -> None:
        """A message for the gateway from another process, or from a thread of this one."""
        self.channels.take(body)


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
        """Who is signed in.

        Raises:
            FrameRefused: 5001.
        """

    @property
    def sender(self) -> Sender:
        """Who its messages are from."""

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
