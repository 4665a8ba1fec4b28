"""The messages that were sent lately: one that is repeated is not delivered, but answered as before."""

import hashlib
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from agents.core.ports import Clock
from gateway.wire.errors import bad_content
from gateway.wire.frames import Envelope, Json, encode, error_frame
from kit.tasks import Waiters

KEPT_S = 300.0
MAX_OF_SENDER = 500
MOST = 10_000
MAX_BYTES = 16_777_216  # of the answers that are kept, of one process


class MessageIdentity(NamedTuple):
    """The same for a message and its repetition: login and seat of its sender, and a digest of what it says.

    `digest` empty: the message has no id, and none repeats it.
    """

    sender: tuple[str, str]
    digest: bytes


def identity_of(envelope: Envelope, login: str, seat: str) -> MessageIdentity:
    """The identity of a message of a client. `seat`: the name of its seat, if any."""
    if not envelope.id:
        return MessageIdentity((login, seat), b"")
    told = msgspec.json.encode((envelope.id, envelope.agent, envelope.wants_response, envelope.content))
    return MessageIdentity((login, seat), hashlib.blake2b(told, digest_size=16).digest())


class RecentMessage:
    """A message that was sent. `answers`: the frames that its sender got; `is_whole`: all of them were kept.

    `stored_id`: the row of a message that waited; 0 if the message did not wait.
    """

    __slots__ = ("answers", "bytes", "ended", "identity", "is_over", "is_whole", "sent_at", "stored_id")

    def __init__(self, identity: MessageIdentity, sent_at: float) -> None:
        self.identity = identity
        self.sent_at = sent_at
        self.answers: list[Json] = []
        self.bytes = 0
        self.is_whole = bool(identity.digest)  # else no message repeats it: its answers take no room
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
        self._senders: OrderedDict[tuple[str, str], OrderedDict[bytes, RecentMessage]] = OrderedDict()
        self._count = 0
        self._bytes = 0

    def find(self, identity: MessageIdentity) -> RecentMessage | None:
        """The message that one with this identity repeats."""
        recent = self._senders.get(identity.sender)
        if recent is None:
            return None
        self._forget_old(recent)
        return recent.get(identity.digest)

    def add(self, identity: MessageIdentity) -> RecentMessage:
        """A new message; without an id it is not remembered."""
        message = RecentMessage(identity, self._clock())
        if not identity.digest:
            return message
        recent = self._senders.setdefault(identity.sender, OrderedDict())
        self._senders.move_to_end(identity.sender)
        self._forget_old(recent)
        if len(recent) >= MAX_OF_SENDER:
            self._forget(recent.popitem(last=False)[1])
        recent[identity.digest] = message
        self._count += 1
        while self._count > MOST:
            _, of_sender = self._senders.popitem(last=False)  # the sender that sent nothing for longest
            for one in of_sender.values():
                self._forget(one)
        return message

    def drop(self, message: RecentMessage) -> None:
        """Forget a message that was not sent, so that the same one may be. Again does nothing."""
        sender, digest = message.identity
        recent = self._senders.get(sender)
        if recent is None or recent.get(digest) is not message:
            return
        del recent[digest]
        self._forget(message, is_whole=message.is_whole)
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
            self._forget(recent.popitem(last=False)[1])

    def _forget(self, message: RecentMessage, *, is_whole: bool = False) -> None:
        self._count -= 1
        self._bytes -= message.bytes
        message.bytes, message.is_whole = 0, is_whole
