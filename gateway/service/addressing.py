"""The sender and the addressee of a message, and the messages that were sent lately.

A repeated message is not delivered twice: its sender gets the earlier answer.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import msgspec

from accounts.authn import Identity
from agents.core.ask_starter import find_agent, get_peer
from agents.core.ports import Clock
from agents.core.types import AskTarget
from agents.links.channel.driving import ActingFor
from agents.models.session import is_online
from agents.transcript.pieces import Part
from gateway.service.registry import TAKE_NO_MESSAGES, load_reported_status
from gateway.service.seat import GATEWAY_LINK, ONLINE
from gateway.service.seat_frames import carry_envelope, name_of_asker, parts_of
from gateway.service.team_rules import AgentName
from gateway.wire.errors import bad_content
from gateway.wire.frames import Envelope, Json, encode, error_frame, stamp
from gateway.wire.permissions import find_only_agent
from kit.tasks import Waiters

KEPT_S = 300.0
MAX_OF_SENDER = 500
MOST = 10_000
MAX_BYTES = 16_777_216  # of the answers that are kept, of one process

SenderKey = tuple[str, str]  # the login, and the name of the seat


class RecentMessage:
    """A message that was sent. `answers`: the frames that its sender got; `is_whole`: all of them were kept.

    `stored_id`: the stored message of a message that waited; 0 if the message did not wait.
    """

    __slots__ = ("answers", "bytes", "ended", "is_over", "is_whole", "sent_at", "stored_id")

    def __init__(self, sent_at: float) -> None:
        self.sent_at = sent_at
        self.answers: list[Json] = []
        self.bytes = 0
        self.is_whole = True
        self.is_over = False
        self.stored_id = 0
        self.ended = Waiters()

    def end(self) -> None:
        """End the request, whose last answer was given."""
        self.is_over = True
        self.ended.wake()

    def answers_to(self, correlation_id: str) -> list[Json]:
        """The answers for the message that repeats it."""
        if not self.is_whole:
            text = "this message was answered before, and the answer is not kept"
            refused = bad_content(text, reason="already_answered")
            refused.correlation_id = correlation_id
            return [error_frame(refused)]
        if not correlation_id:
            return self.answers
        return [
            one | {"metadata": one.get("metadata", {}) | {"correlationId": correlation_id}} for one in self.answers
        ]


class RecentMessages:
    """The messages that the senders of one process sent within five minutes, as far as there is room."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._senders: OrderedDict[SenderKey, OrderedDict[bytes, RecentMessage]] = OrderedDict()
        self._count = 0
        self._bytes = 0

    def find(self, sender: SenderKey, key: bytes) -> RecentMessage | None:
        """The message that one with this key repeats."""
        recent = self._senders.get(sender)
        if recent is None or not key:
            return None
        self._forget_old(recent)
        return recent.get(key)

    def add(self, sender: SenderKey, key: bytes) -> RecentMessage:
        """A new message; without a key it is not remembered."""
        message = RecentMessage(self._clock())
        if not key:
            message.is_whole = False  # no message repeats it: its answers take no room
            return message
        recent = self._senders.setdefault(sender, OrderedDict())
        self._senders.move_to_end(sender)
        self._forget_old(recent)
        if len(recent) >= MAX_OF_SENDER:
            self._forget_first(recent)
        recent[key] = message
        self._count += 1
        while self._count > MOST:
            _, of_sender = self._senders.popitem(last=False)  # the sender that sent nothing for longest
            for one in of_sender.values():
                self._forget(one)
        return message

    def drop(self, sender: SenderKey, key: bytes, message: RecentMessage) -> None:
        """Forget a message that was not sent, so that the same one may be. Again does nothing."""
        recent = self._senders.get(sender)
        if recent is None or recent.get(key) is not message:
            return
        del recent[key]
        self._count -= 1
        self._bytes -= message.bytes
        message.bytes = 0
        if not recent:
            del self._senders[sender]

    def keep(self, message: RecentMessage, frame: Json) -> None:
        """Keep an answer, if there is room."""
        size = len(encode(frame))
        if not message.is_whole or self._bytes + size > MAX_BYTES:
            message.is_whole = False
            return
        message.answers.append(frame)
        message.bytes += size
        self._bytes += size

    def _forget_old(self, recent: OrderedDict[bytes, RecentMessage]) -> None:
        before = self._clock() - KEPT_S
        while recent and next(iter(recent.values())).sent_at < before:
            self._forget_first(recent)

    def _forget_first(self, recent: OrderedDict[bytes, RecentMessage]) -> None:
        self._forget(recent.popitem(last=False)[1])

    def _forget(self, message: RecentMessage) -> None:
        self._count -= 1
        self._bytes -= message.bytes
        message.bytes, message.is_whole = 0, False


def key_of(envelope: Envelope) -> bytes:
    """The key that a message and its repetition share; empty for a message without an id."""
    if not envelope.id:
        return b""
    told = msgspec.json.encode((envelope.id, envelope.agent, envelope.wants_response, envelope.content))
    return hashlib.blake2b(told, digest_size=16).digest()


LONGEST_WAIT_S = 600.0


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
    def takes_stored_messages(self) -> bool:
        """True if messages may wait for it: an agent of the team, or one that is shared with the sender."""
        return bool(self.seat) and self.target.agent_id is None


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
        """The names that recipients see: those of its team, and others."""
        return self.name, f"@{self.login}/{self.seat}"

    def carry(self, envelope: Envelope, target: AskTarget) -> tuple[Part, ...]:
        """The envelope for a seat."""
        login = "" if self.seat and self._is_owner_of(target) else self.login
        return parts_of(carry_envelope(envelope, self.shown_to(target), login))

    def shown_to(self, target: AskTarget) -> str:
        """The name that a seat sees. The agent of another owner is `@owner/name`, as in discovery."""
        if not self.seat or self._is_owner_of(target):
            return self.name
        return self.names[1]

    def _is_owner_of(self, target: AskTarget) -> bool:
        return target.handle.partition("/")[0].lower() == self.login.lower()


@dataclass(frozen=True)
class NewMessage:
    """A message that a client sends. `wait_s`: how long its sender waits for a response."""

    envelope: Envelope
    behalf: ActingFor
    sender: FrameSender
    wait_s: float = 0.0

    def stamped(self) -> "NewMessage":
        """The message with an id and a time, where its sender gave none."""
        return replace(self, envelope=stamp(self.envelope))

    @cached_property
    def identity(self) -> tuple[SenderKey, bytes]:
        """The sender and the key of the message; a message that repeats it has the same."""
        return (self.sender.login, self.sender.seat), key_of(self.envelope)


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
