"""Delivers stored messages to the seats of one process, when a seat comes or becomes free; waits for replies."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from django.db import DatabaseError

from accounts.sealing import SecretUnreadable
from agents.core.dispatch import Dispatcher
from agents.core.errors import (
    Busy,
    Denied,
    FileGone,
    NotPublished,
    Offline,
    OverCap,
    RateLimited,
    Unavailable,
)
from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome, TurnFailure
from gateway.models import Letter
from gateway.service import queue_claims, queue_ends, queue_rows
from gateway.service.messages import RoutedMessage
from gateway.service.pushes import Channels
from gateway.service.queue_rows import DELIVERED_WITHIN_S, read_message
from gateway.service.seat_frames import make_reply
from gateway.service.session_recording import RecordedTurn, Recording, SessionRecorder
from gateway.wire.errors import FrameRefused, GatewayErrorCode, denied_error
from gateway.wire.frames import Json
from kit.async_db import DbCalls
from kit.clock import db_now
from kit.tasks import TaskSet, Waiters

logger = logging.getLogger(__name__)

CALLS_AT_ONCE = 4  # a bound for the moment when a thousand seats come back at once
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
RESTS_S = 10.0  # a pause after a failed delivery, because each try leaves a failed turn
ASKS_FOR_REPLY_EVERY_S = 2.0  # a row is read as well, because the push may be lost


class QueueDelivery:
    """Sends stored messages, each as the turn of a message, and in order for each recipient."""

    def __init__(
        self, process_id: str, dispatcher: Dispatcher, channels: Channels, recorder: SessionRecorder
    ) -> None:
        self._recorder = recorder
        self._process_id = process_id
        self._dispatcher = dispatcher
        self._channels = channels
        self._call = DbCalls(CALLS_AT_ONCE)
        self._busy_with: dict[int, bool] = {}  # recipients, each with whether to look again
        self._resting: dict[int, float] = {}  # recipients, each until when
        self._empty: set[int] = set()  # recipients with seats here for whom nothing waits
        self._tasks = TaskSet()

    def has_none(self, session_id: int) -> bool:
        """True if it is known that no stored message waits for a recipient."""
        return session_id in self._empty

    def expect(self, session_id: int) -> None:
        """A stored message for a recipient is about to be stored."""
        self._empty.discard(session_id)

    def wake(self, session_id: int) -> None:
        """Deliver the messages that wait for a seat: the seat was taken, became free, or got another stored
        message.
        """
        self.expect(session_id)
        if session_id in self._busy_with:
            self._busy_with[session_id] = True
        else:
            self._busy_with[session_id] = False
            self._tasks.start(self._deliver_all(session_id), name=f"queue of {session_id}")

    async def look(self) -> None:
        """End messages that waited too long, and deliver to the seats of this process; called every second."""
        await self._call(queue_ends.expire_due)
        now = asyncio.get_running_loop().time()
        self._resting = {one: until for one, until in self._resting.items() if until > now}
        for session_id in await self._call(queue_claims.find_due_recipients, self._process_id):
            if session_id not in self._resting:
                self.wake(session_id)

    async def greet(self, session_id: int, follow: Callable[[], Awaitable[None]], *, is_new: bool) -> None:
        """A seat was taken: deliver its stored messages. `follow`: pushes it the receipts for its own, of which a
        new session has none.
        """
        self.wake(session_id)
        if not is_new and await self._call(queue_rows.has_outstanding, session_id):
            await follow()

    async def wait_for_reply(self, stored: Letter) -> Json:
        """Wait for the frame that ends a stored message which wants a response: its reply, or an error.

        Empty: another connection of the sender has taken it.
        """
        watch = _Watch()
        try:
            await self._channels.subscribe(stored.sender_owner_id, queue_ends.reply_channel(stored.pk), watch)
            while (frame := await self._call(queue_ends.take_reply, stored.pk)) is None:
                until = stored.expires_at
                left_s = (until - await self._call(db_now)).total_seconds() if until else ASKS_FOR_REPLY_EVERY_S
                soon_s = left_s if left_s > 0 else ASKS_FOR_REPLY_EVERY_S
                await watch.ended.wait(min(soon_s, ASKS_FOR_REPLY_EVERY_S))
            return frame
        finally:
            await asyncio.shield(self._channels.leave(watch))

    async def close(self) -> None:
        """Stop; stored messages that are being sent are claimed by another process, or after a restart."""
        await self._tasks.cancel()

    async def _deliver_all(self, session_id: int) -> None:
        try:
            while True:
                self._busy_with[session_id] = False
                await self._deliver_in_order(session_id)
                if not self._busy_with[session_id]:
                    break
        except (Unavailable, DatabaseError):
            logger.exception("letters.database_away")
        finally:
            del self._busy_with[session_id]

    async def _deliver_in_order(self, session_id: int) -> None:
        higher, pause_s = 0, FIRST_PAUSE_S
        while True:
            claim = await self._call(queue_claims.claim_next, session_id, self._process_id, higher)
            if claim.stored is not None:
                pause_s, higher = FIRST_PAUSE_S, higher + 1 if claim.has_lower else 0
                wait_s = await self._send(claim.stored)
            elif claim.is_blocked:
                wait_s, pause_s = pause_s, min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                if not self._busy_with[session_id]:
                    self._empty.add(session_id)
                return
            if wait_s is None:
                self._resting[session_id] = asyncio.get_running_loop().time() + RESTS_S
                return
            if wait_s:
                await asyncio.sleep(wait_s)

    async def _send(self, stored: Letter) -> float | None:
        """Send a claimed stored message; returns the pause after it, or None if the seat takes no messages now."""
        try:
            message = await self._call(read_message, stored)
            recording = Recording(self._recorder, message, stored.chat_id)
            ask = message.ask(stored.chat_id)
            running = await self._dispatcher.ask(RecordedTurn(ask, recording))
        except (Offline, Unavailable, DatabaseError):
            await self._call(queue_claims.release, stored)
            return None
        except (Busy, OverCap, RateLimited) as denied:
            await self._call(queue_claims.release, stored)
            return float(denied.retry_in_s) if isinstance(denied, RateLimited) else LONGEST_PAUSE_S
        except (Denied, NotPublished, FileGone) as refusal:
            await self._call(queue_ends.end_message, stored, denied_error(refusal))
            return 0.0
        except SecretUnreadable:
            refused = queue_ends.dead_message_error(queue_ends.UNREADABLE, GatewayErrorCode.AGENT_ERROR)
            await self._call(queue_ends.end_message, stored, refused)
            return 0.0
        return await self._see_delivered(stored, message, running)

    async def _see_delivered(self, stored: Letter, message: RoutedMessage, running: RunningTurn) -> float | None:
        if stored.wants_response:
            if not running.is_decided:
                await running.until_decided.wait(DELIVERED_WITHIN_S)
            settled = running.settled.result() if running.is_settled else None
        else:
            settled = await asyncio.shield(running.settled)
        if settled is not None and _is_undelivered(stored, settled):
            is_uncertain = settled.reason != TurnFailure.NOT_DELIVERED
            await self._call(queue_claims.release, stored, is_uncertain=is_uncertain)
            return None
        await self._call(queue_claims.mark_delivered, stored)
        if stored.wants_response:
            self._tasks.start(self._bring_reply(stored, message, running), name=f"reply to stored {stored.pk}")
        return 0.0

    async def _bring_reply(self, stored: Letter, message: RoutedMessage, running: RunningTurn) -> None:
        """Keep the reply of a stored message for its sender, when it comes."""
        settled = await asyncio.shield(running.settled)
        try:
            frame = make_reply(message.key, message.envelope, running, settled, message.sender)
        except FrameRefused as refused:
            frame = queue_ends.make_error(stored, refused)
        await self._call(queue_ends.answer_sender, stored, frame)


class _Watch:
    """Wakes the sender that waits for the end of a stored message."""

    def __init__(self) -> None:
        self.ended = Waiters()

    def push(self, type_name: str, frame: bytes) -> bool:
        """See `gateway.service.pushes.Subscriber`."""
        self.ended.wake()
        return True


def _is_undelivered(stored: Letter, settled: SettledTurn) -> bool:
    """True if the message did not reach the agent, or perhaps did not."""
    if settled.outcome is Outcome.COMPLETED:
        return False
    return not stored.wants_response or settled.reason in (TurnFailure.NOT_DELIVERED, TurnFailure.CHANNEL_LOST)
