"""A message of a client to an agent: its sender, its addressee, and the ask by which it is sent."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from accounts.authn import Identity
from agents.core.ask_starter import find_agent, get_peer
from agents.core.types import Ask, AskSource, AskTarget
from agents.links.channel.driving import ActingFor
from agents.models.choices import Surface
from agents.models.session import is_online
from agents.transcript.mentions import mentions
from agents.transcript.pieces import Part
from gateway.service.registry import TAKE_NO_MESSAGES, load_reported_status
from gateway.service.seat import GATEWAY_LINK, ONLINE
from gateway.service.seat_frames import as_text, carry_envelope, name_of_asker, parts_of
from gateway.service.session_entries import Place, make_place
from gateway.service.team_rules import AgentName
from gateway.wire.frames import LONGEST_TTL_S, Envelope, Json, stamp
from gateway.wire.permissions import find_only_agent
from kit import sql
from kit.clock import approximate_now, db_now

LONGEST_WAIT_S = 600.0


class FrameSender(NamedTuple):
    """The sender of a message: the login of the connection's user, the name of its seat, if any, and its token.

    `tells`: the channel of the receipts for stored messages; empty: the sender gets no receipts.
    `only_agent`: the handle of the one agent that the token is for; empty: the token is for all.
    """

    user_id: int
    login: str
    seat: str
    credential_id: int
    tells: str = ""
    only_agent: str = ""

    @classmethod
    def of(cls, identity: Identity, seat: str = "", tells: str = "") -> "FrameSender":
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
        """The names that recipients in the sender's team see, and those that recipients of other owners see."""
        return self.name, f"@{self.login}/{self.seat}"


class MessageToAsk(NamedTuple):
    """The question to an agent that is no seat; a seat gets the envelope instead of the parts and the task."""

    text: str
    parts: tuple[Part, ...] = ()
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that a client sends. `wait_s`: how long its sender waits for a response.

    `question`: of an HTTP request, which waits for the reply itself: the message is never stored. None: the
    content of the message is the question.
    """

    envelope: Envelope
    behalf: ActingFor
    sender: FrameSender
    wait_s: float = 0.0
    question: MessageToAsk | None = None


@dataclass(frozen=True, slots=True)
class Addressee:
    """The addressee of a message. `seat`: its name at this gateway, if any. `is_own`: its session is the asker's.

    `name`: as its owner's agents know it; `status`: what it says of itself, while it is connected.
    """

    target: AskTarget
    seat: str
    is_own: bool
    name: AgentName
    status: str = ONLINE

    def reply_wait_s(self, default_s: float) -> float:
        """The seconds that a caller waits for its reply. `default_s`: for an agent that has no wait of its own."""
        return min(float(self.target.wait_s or default_s), LONGEST_WAIT_S)

    @property
    def has_inbox(self) -> bool:
        """True if messages may wait for it: an agent of the team, or one that is shared with the sender."""
        return bool(self.seat) and self.target.agent_id is None

    def name_of(self, sender: FrameSender) -> str:
        """The name of a sender for this agent. The agent of another owner is `@owner/name`, as in discovery."""
        return sender.name if not sender.seat or self._is_of(sender.login) else sender.names[1]

    def carry(self, envelope: Envelope, sender: FrameSender) -> Json:
        """The envelope of a message for the seat of this agent."""
        caller = "" if sender.seat and self._is_of(sender.login) else sender.login
        return carry_envelope(envelope, self.name_of(sender), caller)

    def _is_of(self, login: str) -> bool:
        return self.target.handle.partition("/")[0].lower() == login.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedMessage:
    """A message on its way to an agent: as it was sent, or as it is read from its row in the queue.

    `envelope`: with an id and a time. `sender`: the name that the agent sees; `tells`: see `FrameSender`. `key`:
    the correlation id of the reply. `carried`: the envelope for a seat; empty: the agent has no seat. `place`: the
    sessions in which the message belongs. `wait_s`: how long a sender waits that wants a response. `may_wait`: the
    message may be put into the queue of its agent.
    """

    target: AskTarget
    envelope: Envelope
    behalf: ActingFor
    sender: str
    key: str
    question: MessageToAsk
    wait_s: float
    wants_response: bool
    carried: Json
    received_at: datetime
    place: Place | None = None
    tells: str = ""
    may_wait: bool = False
    credential_id: int | None = None

    @property
    def lives_for(self) -> timedelta | None:
        """The time for which the message may wait in the queue; None: for ever."""
        ttl_s = self.wait_s if self.wants_response else self.envelope.metadata.get("ttl")
        if ttl_s is None:
            return None
        return timedelta(seconds=ttl_s if self.wants_response else min(ttl_s, LONGEST_TTL_S))

    def ask(self, chat_id: str, traceparent: str = "", writes: tuple[sql.Query, ...] = ()) -> Ask:
        """The ask by which the message is sent."""
        asker, (text, parts, task_id) = self.behalf.asker, self.question
        source_id = self.behalf.session_id
        return Ask(
            chat_id=chat_id,
            target=self.target,
            caller_id=asker.user_id,
            caller_login=asker.login,
            surface=Surface.GATEWAY,
            question=text,
            wait_s=self.wait_s,
            tells=not self.wants_response,
            source=AskSource(source_id, peer_login=self.target.handle) if source_id else None,
            chain=asker.chain,
            files=tuple(mentions(text)),
            message_id=self.envelope.id,
            context_id=self.envelope.session_id,
            # A seat believes an envelope only without a task.
            task_id="" if self.carried else task_id,
            parts=parts_of(self.carried) if self.carried else parts,
            traceparent=traceparent,
            parent=asker.parent,
            passed_by_stranger=asker.passed_by_stranger,
            credential_id=self.credential_id,
            writes=writes,
        )


def question_of(message: NewMessage) -> MessageToAsk:
    """The question that a message is."""
    said = message.envelope.said
    return message.question or MessageToAsk(as_text(said), () if isinstance(said, str) else (Part(data=said),))


def route_message(message: NewMessage, found: Addressee, key: str) -> RoutedMessage:
    """A message to the agent that was found. `key`: the correlation id of the reply, if the message wants one."""
    envelope, behalf, sender = stamp(message.envelope), message.behalf, message.sender
    asker, place = behalf.asker, None
    # An agent that works for a caller of another owner acts for that caller, also in its messages.
    if found.seat and found.is_own and sender.login == asker.login:
        place = make_place(asker.user_id, asker.login, sender.seat, found.seat, envelope.session_id)
    return RoutedMessage(
        target=found.target,
        envelope=envelope,
        behalf=behalf,
        sender=found.name_of(sender),
        key=key if envelope.wants_response else envelope.correlation_id,
        question=question_of(message),
        wait_s=message.wait_s,
        wants_response=envelope.wants_response,
        carried=found.carry(envelope, sender) if found.seat else {},
        received_at=approximate_now(),
        place=place,
        tells=sender.tells,
        may_wait=found.has_inbox and envelope.type == "message" and message.question is None,
        credential_id=sender.credential_id if found.is_own and not asker.passed_by_stranger else None,
    )


def make_stored(session_id: int, envelope: Envelope, behalf: ActingFor, sender: str, *, key: str) -> RoutedMessage:
    """A message for the queue of a seat whose sender waits for no response. See `RoutedMessage`."""
    return RoutedMessage(
        target=AskTarget(None, session_id, ""),
        envelope=envelope,
        behalf=behalf,
        sender=sender,
        key=key,
        question=MessageToAsk(as_text(envelope.said)),
        wait_s=0.0,
        wants_response=False,
        carried=carry_envelope(envelope, sender, ""),
        received_at=db_now(),
    )


def find_addressee(name: str, user_id: int) -> Addressee:
    """The agent of a name for a user: `name`, `@owner/name`, or the handle `@owner/slug` of a published agent.

    Raises:
        NoSuchTarget, NotAllowed, AmbiguousPeer: there is none that the user may ask.
    """
    published = find_agent(name.removeprefix("@"), user_id) if name.startswith("@") else None
    target = published if published is not None else get_peer(name, user_id).target
    said = load_reported_status(target.session_id)
    counts = said.status in TAKE_NO_MESSAGES and is_online(target.session_id)
    status = said.status if counts else ONLINE
    seat = said.name if said.link == GATEWAY_LINK else ""
    named = AgentName(said.owner_id or 0, target.handle.partition("/")[0], said.name)
    return Addressee(target, seat, said.owner_id == user_id, named, status)
