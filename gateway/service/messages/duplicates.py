"""Messages that were sent lately, so that a repeated one is not delivered twice, and gets the earlier answer."""

import hashlib
from collections import OrderedDict, deque

import msgspec

from agents.core.ports import Clock
from gateway.wire.errors import bad_content
from gateway.wire.frames import Envelope, Json, encode, error_frame
from kit.waits import Waiters

KEPT_S = 300.0
MOST_OF_SENDER = 500
MOST = 10_000
MOST_BYTES = 16_777_216  # of the answers that are kept, of one process

SenderKey = tuple[str, str]  # the login, and the name of the seat


class RecentMessage:
    """A message that was sent. `answers`: the frames that its sender got; `is_whole`: all of them were kept.

    `letter_id`: the letter of a message that waited; 0 if the message did not wait.
    """

    __slots__ = ("answers", "bytes", "ended", "is_over", "is_whole", "letter_id", "sent_at")

    def __init__(self, sent_at: float) -> None:
        self.sent_at = sent_at
        self.answers: list[Json] = []
        self.bytes = 0
        self.is_whole = True
        self.is_over = False
        self.letter_id = 0
        self.ended = Waiters()

    def end(self) -> None:
        """Its last answer was given."""
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
        if len(recent) >= MOST_OF_SENDER:
            self._forget_first(recent)
        recent[key] = message
        self._count += 1
        while self._count > MOST:
            self._forget_sender()
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
        if not message.is_whole or self._bytes + size > MOST_BYTES:
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

    def _forget_sender(self) -> None:
        """Forget the messages of who sent nothing for longest."""
        _, recent = self._senders.popitem(last=False)
        deque(map(self._forget, recent.values()), maxlen=0)

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
