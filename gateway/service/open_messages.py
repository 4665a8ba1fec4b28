"""The messages of one connection: each is sent or stored, and ends with the reply or an error.

A message that was sent lately is not sent again: its sender gets the earlier answer.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import msgspec

from agents.core.errors import Offline
from agents.core.ports import Clock
from agents.core.waiting import RunningTurn
from agents.models.choices import TurnFailure
from gateway.models import Letter
from gateway.service.frame_log import FrameNote
from gateway.service.message_router import FollowReceipts, MessageRouter, SentMessage
from gateway.service.messages import LONGEST_WAIT_S, NewMessage
from gateway.service.queue_ends import has_died_unsent
from gateway.service.seat_frames import make_refusal, make_reply
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content, denied_error
from gateway.wire.frames import Envelope, Json, encode, error_frame, event_frame, new_id
from gateway.wire.protocol import RATE_TEXT
from kit.clock import unix_ms
from kit.tasks import Waiters

KEPT_S = 300.0
MAX_OF_SENDER = 500
MOST = 10_000
MAX_BYTES = 16_777_216  # of the answers that are kept, of one process
MAX_OPEN = 200  # messages of one connection
TOO_MANY_OPEN = f"at most {MAX_OPEN} messages of a connection wait for a response at once"

SendFrame = Callable[[Json], Awaitable[None]]
Result = TypeVar("Result")


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
        # Without an identity no message can repeat this one, so its answers are not kept.
        self.is_whole = bool(identity.digest)
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
            _, of_sender = self._senders.popitem(last=False)  # drops the sender whose last message is the oldest
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


class OpenMessages:
    """The messages of one connection whose replies it waits for: started in order, awaited all at once.

    `follow`: pushes the receipts of its stored messages to it from now on.
    """

    def __init__(
        self,
        router: MessageRouter,
        recent: RecentMessages,
        send: SendFrame,
        follow: FollowReceipts | None = None,
    ) -> None:
        self._router = router
        self._recent = recent
        self._send = send
        self._follow = follow
        self._open: set[str] = set()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_order = asyncio.Lock()
        self._sending = 0

    def take(self, message: NewMessage, note: FrameNote) -> Coroutine[Any, Any, None]:
        """Take a message; returns the coroutine to run for it. A repeated message gets only the earlier answers.

        `note`: ends when the message is on its way, or waits; its turn, or its stored message, has the rest.

        Raises:
            FrameRefused: 1005 when too many are open, 2005 when its correlation id is in use.
        """
        identity = identity_of(message.envelope, message.sender.login, message.sender.seat)
        earlier = self._recent.find(identity)
        if earlier is None:
            return self._begin(message, identity, note)
        if not earlier.stored_id:
            return self._repeat(self._enter(new_id(), message.envelope), message.envelope, earlier)
        note.is_deferred = True
        return self._repeat_stored(earlier, message, note)

    def _begin(self, message: NewMessage, identity: MessageIdentity, note: FrameNote) -> Coroutine[Any, Any, None]:
        envelope = message.envelope
        key = self._enter((envelope.correlation_id if envelope.wants_response else "") or new_id(), envelope)
        note.is_deferred = True
        self._sending += 1
        return self._run(key, message, self._recent.add(identity), note)

    async def leave(self, message: NewMessage) -> Letter:
        """Put a message that wants no response into its recipient's inbox.

        Raises:
            FrameRefused: it was not stored.
        """
        async with self._in_order:
            return await self._router.put_in_inbox(message, self._follow)

    @property
    def is_sending(self) -> bool:
        """True while a message is not on its way yet: a later message must not overtake it."""
        return self._sending > 0

    def end(self) -> None:
        """Release a client that has gone. The turns that it began go on; their replies are kept for a while."""
        if not self._gone.done():
            self._gone.set_result(None)

    def _enter(self, key: str, envelope: Envelope) -> str:
        if len(self._open) >= MAX_OPEN:
            # A message that wants no response is open only while the hub sends it: the client sends too fast.
            text = TOO_MANY_OPEN if envelope.wants_response else RATE_TEXT
            raise FrameRefused(GatewayErrorCode.RATE_LIMITED, text, retry_after_ms=1000)
        if key in self._open:
            text = "a message with this correlation id waits for its reply"
            raise bad_content(text, reason="correlation_in_use")
        self._open.add(key)
        return key

    async def _run(self, key: str, message: NewMessage, recent: RecentMessage, note: FrameNote) -> None:
        """Ask, wait and answer."""
        envelope = message.envelope
        sent: SentMessage | None = None
        try:
            try:
                async with self._in_order:
                    sent = await self._router.send(message, key, self._follow)
            finally:
                self._sending -= 1
            note.finish()
            if sent.running is not None:
                sent = await self._follow_turn(key, message, sent, sent.running, recent)
            if sent.stored is not None:
                recent.stored_id = sent.stored.pk
                await self._follow_stored(key, envelope, sent.stored, recent)
        except FrameRefused as refused:
            note.finish(refused)
            frame = make_refusal(envelope, refused.about(envelope.correlation_id or key, envelope.id))
            self._recent.keep(recent, frame)
            # Before the refusal is sent: the sender may send again at once.
            if sent is None or sent.is_unsent:
                self._recent.drop(recent)
            await self._send(frame)
        except (Exception, asyncio.CancelledError):
            recent.is_whole = False  # without `sent` the message may still have been sent
            raise
        finally:
            if sent is not None and sent.is_unsent:
                self._recent.drop(recent)
            note.finish(has_failed=True)
            recent.end()
            self._open.discard(key)

    async def _follow_turn(
        self, key: str, message: NewMessage, sent: SentMessage, running: RunningTurn, recent: RecentMessage
    ) -> SentMessage:
        """Answer with the reply; or store the message, if it was not delivered.

        The turn goes on without the client: a client that comes back and repeats its message gets the reply.
        """
        settled = await asyncio.shield(running.settled)
        if settled.reason == TurnFailure.NOT_DELIVERED and sent.message.may_wait:
            offline = denied_error(Offline())
            stored = await self._router.store(sent.message, offline, self._follow, is_recorded=True)
            return replace(sent, stored=stored)
        reply = make_reply(key, message.envelope, running, settled, message.sender.name)
        if message.envelope.wants_response:
            await self._answer(reply, recent)
        return sent

    async def _follow_stored(self, key: str, envelope: Envelope, stored: Letter, recent: RecentMessage) -> None:
        about = {"correlationId": envelope.correlation_id or key, "parentId": stored.message_id}
        content: Json = {"agent": envelope.agent, "messageId": stored.message_id}
        if stored.expires_at is not None:
            content["expiresAt"] = unix_ms(stored.expires_at)
        await self._answer(event_frame("message.queued", content, about), recent)
        if not envelope.wants_response:
            return
        if frame := await self._wait_or_go(self._router.queue.wait_for_reply(stored)):
            await self._answer(frame, recent)

    async def _repeat_stored(self, earlier: RecentMessage, message: NewMessage, note: FrameNote) -> None:
        """Send a message again if it was stored and died unsent; else repeat the answers to the earlier one."""
        try:
            if await self._router.read(has_died_unsent, earlier.stored_id):
                self._recent.drop(earlier)
            if (latest := self._recent.find(earlier.identity)) is None:
                await self._begin(message, earlier.identity, note)
                return
            key = self._enter(new_id(), message.envelope)
            note.finish()
            await self._repeat(key, message.envelope, latest)
        except FrameRefused as refused:
            note.finish(refused)
            raise
        finally:
            note.finish(has_failed=True)

    async def _repeat(self, key: str, envelope: Envelope, earlier: RecentMessage) -> None:
        """Give the answers of an earlier message, when there are all of them."""
        try:
            while not earlier.is_over and not self._gone.done():
                await self._wait_or_go(earlier.ended.wait(LONGEST_WAIT_S))
            for frame in earlier.answers_to(envelope.correlation_id):
                await self._send(frame)
        finally:
            self._open.discard(key)

    async def _wait_or_go(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """The result of an awaitable; None if the client goes before it is there."""
        waiting = asyncio.create_task(work)
        try:
            waited: list[asyncio.Future[Any]] = [waiting, self._gone]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else None
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def _answer(self, frame: Json, recent: RecentMessage) -> None:
        self._recent.keep(recent, frame)
        await self._send(frame)
