"""The link to remote servers: each turn is a call outward, from the process that waits for its reply."""

import asyncio
import base64
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from accounts.sealing import SecretUnreadable
from agents.core.errors import NotDelivered
from agents.core.ports import Clock
from agents.core.post import Final
from agents.core.types import Ask, OpenTurn
from agents.core.waiting import RunningTurn, WaitingTurns
from agents.links.remote.approval import Cards
from agents.links.remote.card import Auth, auth_of, target_rules
from agents.links.remote.client import RemoteClient, caller_signer, converse
from agents.links.remote.dialects import RemoteQuestion
from agents.links.remote.events import (
    CardRefused,
    Declined,
    RemoteEvent,
    RemoteFailure,
    RemoteMessage,
    ServerUnreachable,
)
from agents.links.remote.reply import INTERRUPTED, RemoteReply, ReplyTooLarge
from agents.links.remote.server_state import (
    ServerBreakers,
    ServerNames,
    close_breaker,
    enter_breaker,
    find_names,
    open_breaker,
    open_breaker_at_once,
    remember_names,
)
from agents.models import File, RemoteServer
from agents.models.choices import TurnFailure
from agents.transcript.callers_files import find_id
from agents.transcript.files import BlobGone, open_file
from agents.transcript.pieces import Part
from clawbridge.breaker import Permit
from kit.async_db import db_call
from kit.durations import seconds
from kit.safe_http import StreamingHttp
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

AFTER_WAIT_S = 0.5  # so that the turn's own wait ends first
NO_TASK = "the remote agent answered with a message, and its owner requires a task"
CANCEL_WITHIN_S = seconds(5.0, at_least_s=1.5)


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A server with the data for a call. `permit`: the breaker's permission for this call."""

    row: RemoteServer
    auth: Auth
    names: ServerNames
    permit: Permit


class RemoteCall:
    """The call of one turn. `sent` becomes True when the first byte is sent, and False when none will be sent."""

    def __init__(self, turn: OpenTurn, reply: RemoteReply) -> None:
        self.turn = turn
        self.reply = reply
        self.sent: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None
        self.client: RemoteClient | None = None
        self.known: KnownServer | None = None
        self.has_answered = False
        self.is_withdrawn = False

    def mark_sent(self, was_sent: bool = True) -> None:
        """Set `sent`."""
        if not self.sent.done():
            self.sent.set_result(was_sent)

    @property
    def was_sent(self) -> bool:
        """True if anything was sent."""
        return self.sent.done() and self.sent.result()


class RemoteLink:
    """Calls remote servers, and gives their answers to the turns that wait in this process."""

    def __init__(self, *, waiting: WaitingTurns, clock: Clock) -> None:
        self._waiting = waiting
        self._http = StreamingHttp(target_rules())
        self._cards = Cards(clock)
        self._breakers = ServerBreakers()
        self._calls: dict[str, RemoteCall] = {}
        self._tasks = TaskSet()

    def deliver_now(self, running: RunningTurn) -> bool:
        """Always False: a connection has to be made. See `agents.core.ports.Link`."""
        return False

    async def deliver(self, running: RunningTurn) -> None:
        """Send the question; returns when its first byte is sent. See `agents.core.ports.Link`."""
        chat_id, running.link_decides = running.ask.chat_id, True
        call = self._calls[chat_id] = RemoteCall(running.turn, RemoteReply(chat_id, self._waiting.take))
        self._tasks.start(self._run(call), name=f"remote {chat_id}")
        # Shielded: a dispatcher that stops waiting would cancel `sent`, which `_run` still reads.
        if not await asyncio.shield(call.sent):
            raise NotDelivered

    async def withdraw(self, turn: OpenTurn) -> None:
        """Cancel the remote task and stop listening. See `agents.core.ports.Link`."""
        call = self._calls.get(turn.ask.chat_id)
        if call is not None and not call.is_withdrawn:
            call.is_withdrawn = True
            await self._cancel(call)
            if call.task is not None:
                call.task.cancel()

    async def close(self) -> None:
        """Stop every call."""
        await self._tasks.cancel()
        self._http.close()
        self._cards.close()

    async def _run(self, call: RemoteCall) -> None:
        call.task = asyncio.current_task()
        try:
            final = await self._reach_end(call)
        except asyncio.CancelledError:
            # Only `withdraw` cancels one call; otherwise the process ends, and
            # its drain or the reaper ends the turn.
            if not call.is_withdrawn:
                raise
            final = call.reply.ended(TurnFailure.CANCELED)
        except Exception:  # whatever happens, the turn ends
            logger.exception("remote.broken", extra={"chat_id": call.turn.ask.chat_id})
            final = call.reply.ended(TurnFailure.CHANNEL_LOST)
        finally:
            del self._calls[call.turn.ask.chat_id]
        # Nothing was sent, and the turn still waits: `deliver` raises
        # NotDelivered, and the budget is given back.
        if not call.was_sent and self._waiting.find(call.turn.ask.chat_id):
            call.mark_sent(False)
        else:
            call.mark_sent()
            self._waiting.take(final)

    async def _reach_end(self, call: RemoteCall) -> Final:
        ended = call.reply.ended
        try:
            async with asyncio.timeout(call.turn.ask.wait_s + AFTER_WAIT_S):
                return await self._converse(call)
        except TimeoutError:
            await self._cancel(call)
            if not call.has_answered:
                await self._count_failure(call, "no answer in time")
            return ended(TurnFailure.TIMEOUT)
        except ReplyTooLarge:
            # Before the cancel: the caller need not wait for the server's answer to it.
            self._waiting.take(ended(TurnFailure.REPLY_TOO_LARGE))
            await self._cancel(call)
            return ended("")
        except RemoteFailure as failure:
            await self._failed(call, failure)
            return ended(failure.reason, str(failure))

    async def _converse(self, call: RemoteCall) -> Final:
        ask, reply = call.turn.ask, call.reply
        parts = await db_call(with_bytes)(ask) if ask.files else ask.parts
        known = call.known = await db_call(_load_server)(ask)
        reply.task_id = known.names.task_id
        card = await self._cards.get(known.row, known.auth)
        sign_caller = caller_signer(ask, card.interface.url) if known.row.tells_caller else None
        call.client = RemoteClient(self._http, card, known.auth, ask.traceparent, sign_caller)
        question = RemoteQuestion(
            message_id=ask.chat_id,
            parts=parts or (Part(text=call.turn.text),),
            task_id=known.names.task_id,
            context_id=known.names.context_id,
            asked_as=ask.message_id,
        )
        await converse(
            call.client,
            question,
            reply,
            on_send=call.mark_sent,
            on_event=lambda event: self._take_event(call, event),
        )
        waits = reply.task_id if reply.state in INTERRUPTED else ""
        # Before the end is reported: the caller may continue at once, and must reach the same remote task.
        await db_call(remember_names)(known.row.pk, ask, ServerNames(reply.context_id, waits))
        assert reply.end is not None  # noqa: S101  `converse` returns only then
        is_message = not reply.task_id and not reply.end.reason
        return msgspec.structs.replace(reply.end, direct=is_message)

    def _take_event(self, call: RemoteCall, event: RemoteEvent | None = None) -> None:
        """Record that the server answered: close its breaker; with a task's id, mark the turn as that task.

        Raises:
            Declined: the owner of the agent requires a task, and the answer is a message.
        """
        if isinstance(event, RemoteMessage) and not event.task_id and call.known and call.known.row.requires_task:
            raise Declined(NO_TASK)
        if running := self._waiting.find(call.turn.ask.chat_id):
            if call.reply.task_id:
                running.becomes_task()
            elif isinstance(event, RemoteMessage) and not event.task_id:
                running.is_direct = True  # before the pieces of the answer, which then make no task of it
        if call.has_answered or call.known is None:
            return
        call.has_answered = True
        if self._breakers.succeeded(call.known.row.pk, call.known.permit):
            self._tasks.start(_close_breaker(call.known), name="breaker")

    async def _failed(self, call: RemoteCall, failure: RemoteFailure) -> None:
        logger.warning(
            "remote.failed", extra={"chat_id": call.turn.ask.chat_id, "failure": type(failure).__name__}
        )
        if failure.counts:
            await self._count_failure(call, str(failure))
        elif isinstance(failure, CardRefused) and call.known is not None:
            server, tried = call.known.row, call.known.permit.is_probe
            await db_call(open_breaker_at_once)(server.pk, server.card_url, str(failure), tried=tried)
        elif isinstance(failure, Declined):
            # A refusal is an answer too: the server is reachable, so its breaker closes.
            self._take_event(call)
        if call.known is not None and isinstance(failure, Declined):
            self._cards.mark_stale(call.known.row.pk)
            if call.known.names.task_id:  # a task that the server does not know, or will not continue
                await db_call(remember_names)(call.known.row.pk, call.turn.ask, ServerNames())

    async def _count_failure(self, call: RemoteCall, words: str) -> None:
        """Count a failure; the breaker may open."""
        if call.known is None:
            return
        self._cards.mark_stale(call.known.row.pk)
        if self._breakers.failed(call.known.row.pk, call.known.permit):
            await db_call(open_breaker)(call.known.row.pk, words, call.known.permit)

    async def _cancel(self, call: RemoteCall) -> None:
        """Cancel the server's task, if it has one; the request may be lost."""
        if call.client is not None and call.was_sent and call.reply.task_id:
            with suppress(RemoteFailure, TimeoutError):
                async with asyncio.timeout(CANCEL_WITHIN_S):
                    await call.client.cancel(call.reply.task_id)


def _load_server(ask: Ask) -> KnownServer:
    """The server of an ask, with the data for a call.

    Raises:
        Unreachable: the server is gone, its breaker is open, or its credentials cannot be read.
    """
    server = RemoteServer.objects.filter(session_id=ask.target.session_id).first()
    if server is None:
        raise ServerUnreachable("there is no such server any more")
    try:
        auth = auth_of(server)
    except SecretUnreadable as unreadable:
        raise ServerUnreachable(str(unreadable)) from None
    # `enter_breaker` last, after all that can fail: it may be the one probe of a half-open breaker.
    return KnownServer(server, auth, find_names(server, ask), enter_breaker(server))


async def _close_breaker(known: KnownServer) -> None:
    await db_call(close_breaker)(known.row.pk, known.permit)


def with_bytes(ask: Ask) -> tuple[Part, ...]:
    """The parts of an ask with the bytes of files that the hub keeps: the server cannot read the hub's addresses.

    Raises:
        NotDelivered: a file was deleted since the ask was admitted.
    """
    files = File.objects.live().filter(pk__in=ask.files, session=ask.target.session_id).in_bulk()
    return tuple(_with_bytes(part, files) for part in ask.parts)


def _with_bytes(part: Part, files: Mapping[int, File]) -> Part:
    file_id = find_id(part.url) if isinstance(part.url, str) else None
    if file_id is None:
        return part
    slices = open_file(files[file_id]) if file_id in files else None
    if slices is None:
        raise NotDelivered
    try:
        data = b"".join(slices)
    except BlobGone:
        raise NotDelivered from None
    return msgspec.structs.replace(part, url=msgspec.UNSET, raw=base64.b64encode(data).decode())
