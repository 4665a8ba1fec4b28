"""Handles the frames of a registered agent: replies, events to store, requests."""

from dataclasses import dataclass

from msgspec import Raw

from accounts.authn import Identity
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.links.channel import frames
from agents.links.channel.frames import (
    AgentsRequest,
    BadFrame,
    ChatEvent,
    DispatchRequest,
    Error,
    Frame,
    PeersRequest,
    PermissionRequest,
    ProbeRequest,
    Request,
    RouteRequest,
    TailEvent,
)
from agents.links.channel.payloads import TaskArtifact, TaskStatus, kept_of
from agents.links.channel.prompts import Prompts
from agents.links.channel.requests import OpenRequests, Say, find_acting_for
from agents.transcript import permissions
from agents.transcript.permissions import NoSuchRequest, TooManyPending
from agents.transcript.recording import MAX_TYPE_CHARS, BadPayload, NewEvent, clean
from agents.transcript.storage import STORAGE_FULL, StorageMeter
from kit.async_db import db_call


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFrames:
    """Handles the frames of one connection. `send`: sends a frame to the agent; raises OSError when it is gone."""

    identity: Identity
    session_id: int
    prompts: Prompts
    requests: OpenRequests
    ledger: Ledger
    meter: StorageMeter
    send: Say

    async def take(self, frame: Frame) -> None:
        """One frame.

        Raises:
            BadFrame: it is not in order; so the agent is told.
        """
        match frame:
            case ChatEvent():
                if (saying := frames.read_reply_frame(frame)) is None:
                    await self._record("chat", frame.event_type, frame.payload)
                elif await self.prompts.take_reply(saying) and isinstance(saying, TaskStatus | TaskArtifact):
                    await self._keep(frame.event_type, saying)
            case TailEvent():
                await self._record("tail", frame.event_type, frame.payload)
                if frame.event_type == "Stop":
                    await self.prompts.stopped()
                    await self.ledger.release_session(self.session_id)
                elif frame.event_type == "UserPromptSubmit":
                    self.prompts.hooked(begins=True)
            case PermissionRequest():
                await self._request_permission(frame)
            case AgentsRequest() | PeersRequest() | RouteRequest() | DispatchRequest() | ProbeRequest():
                await self._begin(frame)

    async def _keep(self, type_: str, said: TaskStatus | TaskArtifact) -> None:
        """Keep a piece of a reply that the reply's own text does not hold."""
        if (kept := kept_of(said)) is not None:
            await self._record("chat", type_, Raw(kept.encode()))

    async def _record(self, kind: str, type_: str, payload: Raw) -> None:
        """Store an event. When it cannot be stored it is lost, but the connection and its prompts continue."""
        if not await self.meter.takes(self.identity.user_id, len(bytes(payload))):
            await self.send(Error(code="quota_exceeded", message=STORAGE_FULL))
            return
        event = NewEvent(self.session_id, kind, type_[:MAX_TYPE_CHARS], _cleaned(payload))
        try:
            await self.ledger.record(event)
        except Unavailable:
            await self.send(Error(code="unavailable", message="the hub cannot keep events now"))

    async def _begin(self, request: Request) -> None:
        """Serve a request of the agent in a task of its own; on whose behalf is decided now."""
        named = request.chat_id if isinstance(request, RouteRequest | DispatchRequest | ProbeRequest) else None
        behalf = find_acting_for(self.prompts.driver(named or ""), self.identity, self.session_id)
        for refusal in self.requests.take(request, behalf):
            await self.send(refusal)

    async def _request_permission(self, frame: PermissionRequest) -> None:
        if not frame.request_id.isprintable():
            raise BadFrame("bad_frame", "requestId: want printable text")
        driver = self.prompts.driver(frame.chat_id or "")
        try:
            row = await db_call(permissions.request)(
                self.session_id,
                frame.request_id,
                tool=frame.tool,
                input_preview=frame.input_preview,
                chat_id=driver.turn if driver and driver.is_certain else "",
            )
        except TooManyPending:
            raise BadFrame("too_many_requests", "too many requests for leave wait already") from None
        except NoSuchRequest:  # the session was deleted: the socket is about to hear it
            return
        if asked := permissions.find_requests_for_caller(row):
            await self.prompts.ask_caller(row.chat_id, asked)


def _cleaned(payload: Raw) -> str:
    try:
        return clean(bytes(payload))
    except BadPayload as bad:
        raise BadFrame("bad_frame", str(bad)) from None
