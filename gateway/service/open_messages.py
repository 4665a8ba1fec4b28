"""The messages of one connection: each is sent or stored, and ends with the reply or an error."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from django.db import DatabaseError

from agents.core.errors import Offline
from agents.models.choices import TurnFailure
from gateway.service import message_queue
from gateway.service.addressing import LONGEST_WAIT_S, NewMessage, RecentMessage
from gateway.service.frame_log import FrameNote
from gateway.service.message_router import BegunMessage, MessageMustWait, MessageRouter
from gateway.service.queued_messages import StoredMessage
from gateway.service.seat_frames import make_refusal, make_reply
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content, denied_error
from gateway.wire.frames import Envelope, Json, event_frame, new_id
from gateway.wire.protocol import RATE_TEXT
from kit.clock import unix_ms

MAX_OPEN = 200  # messages of one connection
TOO_MANY_OPEN = f"at most {MAX_OPEN} messages of a connection wait for a response at once"

SendFrame = Callable[[Json], Awaitable[None]]
FollowReceipts = Callable[[], Awaitable[None]]
Result = TypeVar("Result")


class OpenMessages:
    """The messages of one connection whose replies it waits for: started in order, awaited all at once.

    `follow`: pushes the receipts of its stored messages to it from now on.
    """

    def __init__(self, router: MessageRouter, send: SendFrame, follow: FollowReceipts | None = None) -> None:
        self._router = router
        self._send = send
        self._follow = follow
        self._open: set[str] = set()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_order = asyncio.Lock()
        self._sending = 0

    def take(self, message: NewMessage, note: FrameNote) -> Coroutine[Any, Any, None]:
        """Take a message; what is to be run for it. A repeated one only gets the answers of the earlier one.

        `note`: ends when the message is on its way, or waits; its turn, or its stored message, has the rest.

        Raises:
            FrameRefused: 1005 when too many are open, 2005 when its correlation id is in use.
        """
        earlier = self._router.recent.find(*message.identity)
        if earlier is None:
            return self._begin(message, note)
        if not earlier.stored_id:
            return self._repeat(self._enter(new_id(), message.envelope), message.envelope, earlier)
        note.is_deferred = True
        return self._repeat_stored(earlier, message, note)

    def _begin(self, message: NewMessage, note: FrameNote) -> Coroutine[Any, Any, None]:
        envelope = message.envelope
        key = self._enter((envelope.correlation_id if envelope.wants_response else "") or new_id(), envelope)
        note.is_deferred = True
        self._sending += 1
        return self._run(key, message, self._router.recent.add(*message.identity), note)

    async def leave(self, message: NewMessage) -> StoredMessage:
        """Put a message that wants no response into its recipient's inbox.

        Raises:
            FrameRefused: it was not stored.
        """
        async with self._in_order:
            draft = await self._router.draft_message(message)
            return await self._store(MessageMustWait(draft, denied_error(Offline()), is_wanted=True))

    @property
    def is_sending(self) -> bool:
        """True if a message is not on its way yet: a later one must not overtake it."""
        return self._sending > 0

    def end(self) -> None:
        """The client is gone; the turns that it began go on, and their replies are kept for a while."""
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
        begun: BegunMessage | None = None
        stored: StoredMessage | None = None
        try:
            try:
                async with self._in_order:
                    try:
                        begun = await self._router.begin(key, message)
                    except MessageMustWait as waits:
                        stored = await self._store(waits)
            finally:
                self._sending -= 1
            note.finish()
            if begun is not None:
                stored = await self._follow_turn(key, message, begun, recent)
            if stored is not None:
                recent.stored_id = stored.id
                await self._follow_stored(key, message, stored, recent)
        except FrameRefused as refused:
            note.finish(refused)
            frame = make_refusal(envelope, refused.about(envelope.correlation_id or key, envelope.id))
            self._router.recent.keep(recent, frame)
            # Before the refusal is sent: the sender may send again at once.
            if begun is None or _is_unsent(begun, stored):
                self._router.recent.drop(*message.identity, recent)
            await self._send(frame)
        except (Exception, asyncio.CancelledError):
            recent.is_whole = False  # without `begun`, too, it may have been sent
            raise
        finally:
            if begun is not None and _is_unsent(begun, stored):
                self._router.recent.drop(*message.identity, recent)
            note.finish(has_failed=True)
            recent.end()
            self._open.discard(key)

    async def _store(self, waits: MessageMustWait, *, is_recorded: bool = False) -> StoredMessage:
        if self._follow is not None:  # first: a receipt may come as soon as the stored message is stored
            try:
                await self._follow()
            except DatabaseError as failure:
                raise denied_error(failure) from None
        return await self._router.store(waits, is_recorded=is_recorded)

    async def _follow_turn(
        self, key: str, message: NewMessage, begun: BegunMessage, recent: RecentMessage
    ) -> StoredMessage | None:
        """Answer with the reply. A stored message: the message was not delivered, and waits.

        The turn goes on without the client: a client that comes back and repeats its message gets the reply.
        """
        running = begun.running
        settled = await asyncio.shield(running.settled)
        if settled.reason == TurnFailure.NOT_DELIVERED and begun.draft is not None:
            return await self._store(MessageMustWait(begun.draft, denied_error(Offline())), is_recorded=True)
        reply = make_reply(key, message.envelope, running, settled, message.sender.name)
        if message.envelope.wants_response:
            await self._answer(reply, recent)
        return None

    async def _follow_stored(
        self, key: str, message: NewMessage, stored: StoredMessage, recent: RecentMessage
    ) -> None:
        envelope = message.envelope
        about = {"correlationId": envelope.correlation_id or key, "parentId": stored.message_id}
        content: Json = {"agent": envelope.agent, "messageId": stored.message_id}
        if stored.expires_at is not None:
            content["expiresAt"] = unix_ms(stored.expires_at)
        await self._answer(event_frame("message.queued", content, about), recent)
        if not envelope.wants_response:
            return
        if frame := await self._wait_or_go(
            self._router.queue.wait_for_reply(stored, message.behalf.asker.user_id)
        ):
            await self._answer(frame, recent)

    async def _repeat_stored(self, earlier: RecentMessage, message: NewMessage, note: FrameNote) -> None:
        """Send a message again if it was stored and died unsent; else repeat the answers to the earlier one."""
        try:
            if await self._router.read(message_queue.has_died_unsent, earlier.stored_id):
                self._router.recent.drop(*message.identity, earlier)
            if (latest := self._router.recent.find(*message.identity)) is None:
                await self._begin(message, note)
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
        """The result of something that is waited for; None: the client is gone first."""
        waiting = asyncio.create_task(work)
        try:
            waited: list[asyncio.Future[Any]] = [waiting, self._gone]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else None
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def _answer(self, frame: Json, recent: RecentMessage) -> None:
        self._router.recent.keep(recent, frame)
        await self._send(frame)


def _is_unsent(begun: BegunMessage, stored: StoredMessage | None) -> bool:
    """True if the gateway knows that nothing was sent to the agent, and no stored message waits to be sent."""
    return stored is None and begun.running.is_settled and begun.running.settled.result().is_unsent
