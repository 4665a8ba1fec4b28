"""The socket of an agent: prompts out, and the agent's frames in (docs/reference/frames.md)."""

import logging
from contextlib import suppress
from functools import partial

from django.db import DatabaseError
from msgspec import Raw, structs

from agents import settings
from agents.core.errors import NoSuchTurn, NotDelivered, TooManyFollowUps, Unavailable
from agents.core.post import Evict, Hook, PostedPrompt, Withdrawn
from agents.links.channel import frames
from agents.links.channel.connection import AgentConnection, response_of
from agents.links.channel.frames import (
    FROM_AGENT,
    TO_AGENT,
    AgentsRequest,
    BadChannelFrame,
    ChatEvent,
    DispatchRequest,
    Error,
    PeersRequest,
    PermissionRequest,
    ProbeRequest,
    Register,
    Request,
    RouteRequest,
    TailEvent,
)
from agents.links.channel.payloads import (
    Reply,
    ReplyChunk,
    TaskArtifact,
    TaskStatus,
    kept_of,
    read_plain_reply,
)
from agents.links.channel.prompts import TooLarge, UnknownChat
from agents.links.frame_socket import NORMAL
from agents.links.sockets import ToSocket
from agents.transcript import permissions
from agents.transcript.announcements import AgentFrame, CloseAgent, PermissionOutcome
from agents.transcript.callers_files import find_id
from agents.transcript.permissions import NoSuchRequest, TooManyPending
from agents.transcript.pieces import MAX_REPLY_BYTES, Part, size_of
from agents.transcript.recording import MAX_TYPE_CHARS, BadPayload, NewEvent, clean, kept_text, payload_of
from agents.transcript.storage import STORAGE_FULL
from kit.account_pace import FRAME
from kit.async_db import db_call
from kit.describe import CHANNEL_TOKEN, DescribedSocket
from kit.sockets import SERVICE_RESTART

logger = logging.getLogger(__name__)

MAX_FRAME_BYTES = 4 * 1_048_576  # enforced by the server: a reply of 1 MiB becomes longer when JSON escapes it
SOCKET = DescribedSocket(
    path="/channel",
    summary="An agent dials out, registers, is asked, and replies.",
    security=[CHANNEL_TOKEN],
    from_client=[*FROM_AGENT.values()],
    to_client=TO_AGENT,
    payloads={ChatEvent: (Reply, ReplyChunk, TaskStatus, TaskArtifact)},
)
SUPERSEDED = "superseded"


def for_agent(part: Part, session_public_id: str) -> Part:
    """A part as the agent gets it: of a file that the hub keeps, the address that takes the agent's token."""
    file_id = find_id(part.url) if isinstance(part.url, str) else None
    if file_id is None:
        return part
    url = f"{settings.PUBLIC_URL}/api/channel/files/{file_id}?sessionId={session_public_id}"
    return structs.replace(part, url=url)


class AgentSocket(AgentConnection):
    """The `ServedSocket` of an agent over `/channel`."""

    # Called by the link.

    def prompt_now(self, prompt: PostedPrompt) -> bool:
        """Send a question without a coroutine. See `agents.links.sockets.ServedSocket`."""
        if self._over or self._waiting_prompts or self.send_now is None:
            return False
        if not self.send_now(self._frame_of(prompt)):
            return False
        self._prompts.begin(prompt)
        return True

    async def prompt(self, prompt: PostedPrompt) -> None:
        """Send a question. See `agents.links.sockets.ServedSocket`."""
        if self._over:
            raise NotDelivered
        # Before the frame is sent: the agent's reply may be read before `_send_prompt` returns.
        self._prompts.begin(prompt)
        await self._send_prompt(self._frame_of(prompt), partial(self._prompts.withdraw, prompt.chat_id))

    def _frame_of(self, prompt: PostedPrompt) -> bytes:
        public_id = self._registered.public_id if self._registered else ""
        frame = frames.Prompt(
            chat_id=prompt.chat_id,
            text=prompt.text,
            asker_user=prompt.asker,
            task_id=prompt.task_id,
            context_id=prompt.context_id,
            parts=[for_agent(part, public_id) for part in prompt.parts] if prompt.parts else [],
            traceparent=prompt.traceparent,
            message_id=prompt.message_id,
        )
        return frames.encode(frame)

    async def take(self, message: ToSocket) -> None:
        """Handle a message from the hub. See `agents.links.sockets.ServedSocket`."""
        match message:
            case Evict():  # a newer connection has the session
                await self.close_from_hub(NORMAL, bye="" if message.same_program else SUPERSEDED, retry=False)
            case CloseAgent():
                await self.close_from_hub(NORMAL, bye=message.reason, retry=False)
            case AgentFrame():
                with suppress(OSError):
                    await self._send_bytes(bytes(message.frame))
            case PermissionOutcome():
                await self._send_if_open(response_of(message.resolution))
                if message.piece is not None:
                    await self._prompts.tell_caller(message.chat_id, message.piece)
            case Withdrawn():
                if self._prompts.cancel(message.chat_id) and self._hears_cancel:
                    await self._send_if_open(frames.Cancel(chat_id=message.chat_id))
            case Hook(is_stop=True):
                await self._prompts.stopped()
            case Hook():
                self._prompts.hooked(begins=message.begins)

    # Called by the server with the agent's frames.

    def receive_now(self, text: bytes) -> bool:
        """Handle a reply, or a chunk of one, to a caller of this process. See `kit.sockets.SocketConsumer`."""
        reply = read_plain_reply(text)
        if reply is None or self.pace.is_behind:
            return False
        if not (messages := self._prompts.read_reply_for(self._process_id, reply)):
            return False
        self.pace.count(FRAME + len(text))
        self._last_heard = self._clock()
        self._link.report_here(messages)
        return True

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle one message of the agent."""
        self._last_heard = self._clock()
        if self._over:
            return
        try:
            await self._take(text_data)
        except OSError:  # the agent's end is closed, or the agent does not read
            await self._fail_open_prompts()
        except (DatabaseError, Unavailable):
            logger.exception("socket.database_away")
            await self.close_from_hub(SERVICE_RESTART)

    async def _take(self, text: str | None) -> None:
        """Handle a frame; an invalid frame is answered by an error frame."""
        try:
            frame = frames.decode(text)
            if isinstance(frame, Register):
                await self._register(frame)
                return
            if self._registered is None:
                raise BadChannelFrame("not_registered", "the first frame must be register")
            match frame:
                case ChatEvent():
                    await self._take_chat_event(frame)
                case TailEvent():
                    await self._record("tail", frame.event_type, frame.payload)
                    if frame.event_type == "Stop":
                        await self._prompts.stopped()
                        await self._ledger.release_session(self.session_id)
                    elif frame.event_type == "UserPromptSubmit":
                        self._prompts.hooked(begins=True)
                case PermissionRequest():
                    await self._request_permission(frame)
                case AgentsRequest() | PeersRequest() | RouteRequest() | DispatchRequest() | ProbeRequest():
                    await self._begin(frame)
        except TooLarge as large:
            await self._prompts.too_large(large)
            await self._send(large.error)
        except BadChannelFrame as bad:
            await self._send(bad.error)

    async def _take_chat_event(self, event: ChatEvent) -> None:
        """Report an event that is part of a reply; store an event whose content is not in the text of a reply."""
        reply = frames.read_reply_frame(event)
        if reply is None:
            await self._record("chat", event.event_type, event.payload)
            return
        try:
            is_taken = await self._prompts.take_reply(reply)
        except UnknownChat:
            if not isinstance(reply, Reply) or not reply.text:
                raise
            await self._follow_up(reply)
            return
        if is_taken and isinstance(reply, TaskStatus | TaskArtifact) and (kept := kept_of(reply)) is not None:
            await self._record("chat", event.event_type, Raw(kept.encode()))

    async def _follow_up(self, reply: Reply) -> None:
        """Store a reply to a turn that already has one. An isolated agent may follow up only on turns of its
        present caller.
        """
        if size_of(reply.text) > MAX_REPLY_BYTES:
            raise BadChannelFrame("reply_too_large", f"a reply holds at most {MAX_REPLY_BYTES} bytes")
        text = reply.text.replace("\0", "\ufffd")  # PostgreSQL cannot store NUL
        payload = payload_of(text=text, chatId=reply.chat_id, followUp=True)
        if not await self._has_room(payload.encode()):
            return
        behalf = self._prompts.acting_for(self._owner)
        only_of = behalf.asker.user_id if behalf.isolated else None
        try:
            await self._follow_ups.take(self.session_id, reply.chat_id, text, only_of=only_of)
        except NoSuchTurn:
            raise UnknownChat from None
        except TooManyFollowUps as many:
            raise BadChannelFrame("too_many_follow_ups", str(many)) from None
        await self._store("chat", "reply", payload)

    async def _record(self, kind: str, type_: str, payload: Raw) -> None:
        """Store an event. An event that cannot be stored is lost, but the connection and its prompts continue."""
        if await self._has_room(bytes(payload)):
            try:
                cleaned = clean(bytes(payload))
            except BadPayload as bad:
                raise BadChannelFrame("bad_frame", str(bad)) from None
            await self._store(kind, kept_text(type_, MAX_TYPE_CHARS), cleaned)

    async def _has_room(self, payload: bytes) -> bool:
        if await self._meter.takes(self._owner.asker.user_id, len(payload)):
            return True
        await self._send(Error(code="quota_exceeded", message=STORAGE_FULL))
        return False

    async def _store(self, kind: str, type_: str, payload: str) -> None:
        try:
            await self._ledger.record(NewEvent(self.session_id, kind, type_, payload))
        except Unavailable:
            await self._send(Error(code="unavailable", message="the hub cannot keep events now"))

    async def _begin(self, request: Request) -> None:
        """Serve a request of the agent in its own task, on behalf of the user for whom the agent acts now."""
        named = request.chat_id if isinstance(request, RouteRequest | DispatchRequest | ProbeRequest) else None
        for refusal in self._requests.take(request, self._prompts.acting_for(self._owner, named or "")):
            await self._send(refusal)

    async def _request_permission(self, frame: PermissionRequest) -> None:
        if not frame.request_id.isprintable():
            raise BadChannelFrame("bad_frame", "requestId: want printable text")
        behalf = self._prompts.acting_for(self._owner, frame.chat_id or "")
        try:
            row = await db_call(permissions.request)(
                self.session_id,
                frame.request_id,
                tool=frame.tool,
                input_preview=frame.input_preview,
                chat_id=behalf.asker.parent if behalf.is_certain else "",
            )
        except TooManyPending:
            raise BadChannelFrame("too_many_requests", "too many permission requests wait already") from None
        except NoSuchRequest:  # the session was deleted: the hub is about to close this socket
            return
        if asked := permissions.find_requests_for_caller(row):
            await self._prompts.ask_caller(row.chat_id, asked)
