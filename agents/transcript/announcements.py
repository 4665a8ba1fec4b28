"""Live messages to the sockets of operators and agents: their shapes, and sending them after a commit.

Synchronous code (REST views, the admin, jobs) sends them too. Outside a hub process, as in a Celery worker or a
shell, nothing is sent: live views and sockets find out by the rows. The module also announces the subscribers of a
session's events, for webhooks.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec
from django.db import transaction
from msgspec import Raw, Struct

from agents.models import Attachment, Connection, Session
from agents.transcript.pieces import ApprovalDecided
from kit.clock import iso
from kit.sql import KeyedQuery
from webhooks.service import outbox
from webhooks.service.outbox import OutboxEvent


class LiveMessage(msgspec.Struct, frozen=True, rename="camel", tag_field="type"):
    """Any message about a session; its class says its `type`, `session_id` is the public one."""

    session_id: str


class SeenEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An event as operators see it: without its id."""

    kind: str
    type: str
    payload: msgspec.Raw
    ts: str


class EventMessage(LiveMessage, frozen=True, tag="event"):
    """Something happened in the session."""

    event: SeenEvent


class OpMessageMessage(LiveMessage, frozen=True, tag="op_message"):
    """An operator wrote to the others; its author gets it too."""

    author_login: str
    text: str
    mentions: list[str]
    ts: str


class PermissionRequested(LiveMessage, frozen=True, tag="permission_request"):
    """The agent's program asks permission for a tool call."""

    request_id: str
    tool: str
    input_preview: str
    ts: str


class PermissionResolved(LiveMessage, frozen=True, tag="permission_resolved"):
    """A user decided (`allow`, `deny`), or the time ran out (`expired`)."""

    request_id: str
    decision: str
    resolver_login: str | None


class PresenceMessage(LiveMessage, frozen=True, omit_defaults=True, tag="presence"):
    """The logins that are attached now, and the login that just came or left."""

    attached: list[str]
    joined: str | None = None
    left: str | None = None


class ChannelStatus(LiveMessage, frozen=True, tag="channel_status"):
    """The session's agent came or went."""

    connected: bool
    ts: str


class FileMessage(LiveMessage, frozen=True, tag="file_event"):
    """A file was `uploaded`, `deleted` or `referenced`; `file` is an ApiFile."""

    action: str
    file: dict[str, Any]


class ReplyChunkMessage(LiveMessage, frozen=True, tag="chat_reply_chunk"):
    """A piece of a reply that is still being written; the whole follows as an event."""

    chat_id: str
    text: str
    done: bool


FROM_LIVE: tuple[type[LiveMessage], ...] = (
    EventMessage,
    OpMessageMessage,
    PermissionRequested,
    PermissionResolved,
    PresenceMessage,
    ChannelStatus,
    FileMessage,
    ReplyChunkMessage,
)


encode = msgspec.json.Encoder().encode


def seen_event(session_public_id: str, kind: str, type_: str, payload: str, ts: datetime) -> EventMessage:
    """An event as its message; `payload` is JSON text."""
    return EventMessage(session_public_id, SeenEvent(kind, type_, msgspec.Raw(payload.encode()), iso(ts)))


Decision = Literal["allow", "deny", "expired"]


class AgentFrame(Struct, frozen=True, tag="tell"):
    """A finished frame for the agent of a connection; its delivery is not confirmed, and it may be lost."""

    connection_id: int
    frame: Raw


class Resolution(Struct, frozen=True):
    """The end of a permission request; `message`: of the user who decided it, if there is one."""

    request_id: str
    decision: Decision
    message: str | None = None


class PermissionOutcome(Struct, frozen=True, tag="permission_decided"):
    """To the agent of a connection: how its permission request ended. The message may be lost.

    `piece`: what the caller of the turn `chat_id` is told.
    """

    connection_id: int
    resolution: Resolution
    chat_id: str = ""
    piece: ApprovalDecided | None = None


class CloseAgent(Struct, frozen=True, tag="dismiss"):
    """The session of a connection is gone: the agent is told not to come back."""

    connection_id: int
    reason: str


class LiveFrame(Struct, frozen=True, tag="live"):
    """A finished frame for the operators of a session whom the receiving process holds."""

    session_id: int
    frame: Raw


class RecheckAccess(Struct, frozen=True, tag="oust"):
    """A user lost their share of a session, or part of it: their operators' sockets look again."""

    session_id: int
    user_id: int


class SurfaceMessage(Struct, frozen=True, tag="surface"):
    """For the part of a process that serves a surface, by the surface's name; only that part reads the body."""

    surface: str
    body: Raw


Message = AgentFrame | PermissionOutcome | CloseAgent | LiveFrame | RecheckAccess | SurfaceMessage
AddressedMessage = tuple[str, Message]  # a process, and what to tell it
Carrier = Callable[[Sequence[AddressedMessage]], None]

_carriers: list[Carrier] = []


def set_carrier(carrier: Carrier | None) -> Carrier | None:
    """Set the function that sends messages from any thread to their processes; the hub calls it at start.

    None: messages are dropped. Returns the one that was set before.
    """
    before = _carriers[0] if _carriers else None
    _carriers[:] = [] if carrier is None else [carrier]
    return before


def send_after_commit(addressed: Sequence[AddressedMessage]) -> None:
    """Send messages to their processes after the commit."""
    transaction.on_commit(lambda: _send_messages(addressed))


def announce(session_id: int, *messages: LiveMessage) -> None:
    """Send these to the operators who watch the session (its row id), after the commit."""
    announce_in_each({session_id: messages})


def announce_in_each(messages: Mapping[int, Sequence[LiveMessage]]) -> None:
    """Send messages to the operators who watch sessions, by the row ids of these, after the commit."""
    transaction.on_commit(lambda: _send_messages(_address_live_frames(messages)))


def announce_lost_access(session_id: int, user_id: int) -> None:
    """Make the user's live views recheck their access after the commit, because their share was reduced."""
    transaction.on_commit(
        lambda: _send_messages(
            [(process, RecheckAccess(session_id, user_id)) for process in _processes(session_id)]
        )
    )


def send_frame_to_agent(session_id: int, frame: bytes) -> bool:
    """Send a finished frame to the session's agent after the commit; False when none is connected."""
    return _to_agent(session_id, lambda connection_id: AgentFrame(connection_id, Raw(frame)))


def send_resolution(
    session_id: int, resolution: Resolution, chat_id: str = "", piece: ApprovalDecided | None = None
) -> bool:
    """Tell the session's agent how its permission request ended, after the commit; False when none is connected.

    `chat_id`, `piece`: see `PermissionOutcome`.
    """
    return _to_agent(
        session_id, lambda connection_id: PermissionOutcome(connection_id, resolution, chat_id, piece)
    )


def close_sessions(session_ids: Collection[int], reason: str) -> None:
    """Call before the rows of sessions are deleted: tell their connected agents after the commit not to reconnect.

    Live views of the sessions recheck their access then, and end.
    """
    connected = Connection.objects.filter(session_id__in=session_ids).values_list("process_id", "pk")
    watching = Attachment.objects.filter(session_id__in=session_ids)
    watchers = watching.values_list("process_id", "session_id", "user_id").distinct()
    agents: list[AddressedMessage] = [(process, CloseAgent(pk, reason)) for process, pk in connected]
    send_after_commit([*agents, *((process, RecheckAccess(*access)) for process, *access in watchers)])


def _to_agent(session_id: int, message: Callable[[int], Message]) -> bool:
    """Send what `message` makes for the id of the connection."""
    found = Connection.objects.filter(session_id=session_id).values_list("process_id", "pk").first()
    if found is None:
        return False
    process_id, connection_id = found
    send_after_commit([(process_id, message(connection_id))])
    return True


def _address_live_frames(messages: Mapping[int, Sequence[LiveMessage]]) -> list[AddressedMessage]:
    if not messages or not _carriers:
        return []
    watching = Attachment.objects.filter(session_id__in=messages).values_list("session_id", "process_id")
    return [
        (process, LiveFrame(session_id, Raw(encode(one))))
        for session_id, process in watching.distinct()
        for one in messages[session_id]
    ]


def _processes(session_id: int) -> set[str]:
    """The processes that hold watchers of a session."""
    watching = Attachment.objects.filter(session_id=session_id).values_list("process_id", flat=True)
    return set(watching) if _carriers else set()


def _send_messages(addressed: Sequence[AddressedMessage]) -> None:
    if addressed:
        for carrier in _carriers:
            carrier(addressed)


_SESSIONS = KeyedQuery(
    lambda ids: Session.objects.filter(pk__in=ids).values_list(
        "pk", "public_id", "routing_name", "owner_id", "owner__login", "shares__user_id"
    )
)


@dataclass(frozen=True, slots=True)
class SessionAudience:
    """A session as webhooks name it. `audience`: its owner and those it is shared with."""

    public_id: str
    routing_name: str
    owner_id: int
    owner_login: str
    audience: frozenset[int]

    def make_event(self, type_: str, traceparent: str = "", /, **members: Any) -> OutboxEvent:
        """An event for every user who sees the session."""
        payload = {"sessionId": self.public_id, "routingName": self.routing_name, **members}
        return OutboxEvent(
            type=type_,
            audience=self.audience,
            payload=payload,
            session_id=self.public_id,
            routing_name=self.routing_name,
            traceparent=traceparent,
        )

    def event(
        self, event_id: int, kind: str, type_: str, payload: str, ts: datetime, traceparent: str = ""
    ) -> OutboxEvent:
        """An event was stored; `payload` is JSON text."""
        shown = {"id": event_id, "kind": kind, "type": type_, "payload": Raw(payload.encode()), "ts": iso(ts)}
        return self.make_event(f"{kind}.event", traceparent, ownerLogin=self.owner_login, event=shown)

    def agent(self, type_: str, traceparent: str = "", /, **members: Any) -> OutboxEvent:
        """Announce a change of an ask to the agent on this session, for its owner alone."""
        return OutboxEvent(
            type=type_,
            audience={self.owner_id},
            payload={name: value for name, value in members.items() if value is not None},
            session_id=self.public_id,
            routing_name=self.routing_name,
            traceparent=traceparent,
        )


def load_session_audiences(session_ids: Collection[int]) -> dict[int, SessionAudience]:
    """Load the audiences of these sessions in one round trip."""
    found: dict[tuple[Any, ...], set[int | None]] = {}
    for *session, sharee_id in _SESSIONS.rows(session_ids):  # a session that is not shared has one row
        found.setdefault(tuple(session), set()).add(sharee_id)
    return {
        pk: SessionAudience(str(public_id), f"@{name}", owner_id, login, frozenset({owner_id, *sharees} - {None}))
        for (pk, public_id, name, owner_id, login), sharees in found.items()
    }


def queue_session_event(session: Session, type_: str, members: Mapping[str, Any]) -> None:
    """Queue the webhook deliveries of a session's event, inside the transaction that caused it."""
    if outbox.has_subscriptions():
        outbox.record([load_session_audiences([session.pk])[session.pk].make_event(type_, **members)])
