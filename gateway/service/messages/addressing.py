"""The sender and the addressee of a message."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from accounts.authn import Identity
from agents.core.ask_starter import find_agent, get_peer
from agents.core.types import Target
from agents.links.channel.requests import ActingFor
from agents.models.session import is_online
from agents.transcript.pieces import Part
from gateway.service.messages.duplicates import SenderKey, key_of
from gateway.service.seats.seat import GATEWAY_LINK, ONLINE
from gateway.service.seats.seat_frames import carry_envelope, name_of_asker, parts_of
from gateway.service.team.registry import TAKE_NO_MESSAGES, load_said
from gateway.service.team.team_rules import AgentName
from gateway.wire.frames import Envelope, stamp
from gateway.wire.permissions import find_only_agent

LONGEST_WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Addressee:
    """The addressee of a message. `seat`: its name at this gateway, if any. `is_own`: its session is the asker's.

    `name`: as its owner's agents know it; `status`: what it says of itself, while it is connected.
    """

    target: Target
    seat: str
    is_own: bool
    name: AgentName
    status: str = ONLINE

    def reply_wait_s(self, default_s: float) -> float:
        """How long a caller waits for its reply. `default_s`: for an agent that has no wait of its own."""
        return min(float(self.target.wait_s or default_s), LONGEST_WAIT_S)

    @property
    def takes_letters(self) -> bool:
        """Whether messages may wait for it: an agent of the team, or one that is shared with the sender."""
        return bool(self.seat) and self.target.agent_id is None


class Sender(NamedTuple):
    """The sender of a message: the login of the connection's user, the name of its seat, if any, and its token.

    `tells`: the channel of the receipts of its letters; empty: it gets none. `only_agent`: the handle of the one
    agent that its token is for; empty: it is for all.
    """

    user_id: int
    login: str
    seat: str
    credential_id: int
    tells: str = ""
    only_agent: str = ""

    @classmethod
    def of(cls, identity: Identity, seat: str = "", tells: str = "") -> "Sender":
        """The client that has signed in with a token."""
        return cls(
            identity.user_id, identity.login, seat, identity.credential_id, tells, find_only_agent(identity)
        )

    @property
    def name(self) -> str:
        """The name by which an agent of the same owner answers."""
        return self.seat or name_of_asker(self.login)

    @property
    def names(self) -> tuple[str, str]:
        """The names that recipients see: those of its team, and others."""
        return self.name, f"@{self.login}/{self.seat}"

    def carry(self, envelope: Envelope, target: Target) -> tuple[Part, ...]:
        """The envelope for a seat."""
        login = "" if self.seat and self._is_owner_of(target) else self.login
        return parts_of(carry_envelope(envelope, self.shown_to(target), login))

    def shown_to(self, target: Target) -> str:
        """The name that a seat sees. The agent of another owner is `@owner/name`, as in discovery."""
        if not self.seat or self._is_owner_of(target):
            return self.name
        return self.names[1]

    def _is_owner_of(self, target: Target) -> bool:
        return target.handle.partition("/")[0].lower() == self.login.lower()


@dataclass(frozen=True)
class NewMessage:
    """A message that a client sends. `wait_s`: how long its sender waits for a response."""

    envelope: Envelope
    behalf: ActingFor
    sender: Sender
    wait_s: float = 0.0

    def stamped(self) -> "NewMessage":
        """The message with an id and a time, where its sender gave none."""
        return replace(self, envelope=stamp(self.envelope))

    @cached_property
    def identity(self) -> tuple[SenderKey, bytes]:
        """Its sender and its key, which it shares with a message that repeats it."""
        return (self.sender.login, self.sender.seat), key_of(self.envelope)


def find_addressee(name: str, user_id: int) -> Addressee:
    """The agent of a name for a user: `name`, `@owner/name`, or the handle `@owner/slug` of a published agent.

    Raises:
        NoSuchTarget, NotAllowed, AmbiguousPeer: there is none that the user may ask.
    """
    published = find_agent(name.removeprefix("@"), user_id) if name.startswith("@") else None
    target = published if published is not None else get_peer(name, user_id).target
    said = load_said(target.session_id)
    counts = said.status in TAKE_NO_MESSAGES and is_online(target.session_id)
    status = said.status if counts else ONLINE
    seat = said.name if said.link == GATEWAY_LINK else ""
    named = AgentName(said.owner_id or 0, target.handle.partition("/")[0], said.name)
    return Addressee(target, seat, said.owner_id == user_id, named, status)
