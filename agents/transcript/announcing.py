"""Live messages to the sockets of operators and agents: their shapes, and sending them after a commit.

Synchronous code (REST views, the admin, jobs) sends them too. Outside a hub process, as in a Celery worker or a
shell, nothing is sent: live views and sockets find out by the rows.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from django.db import transaction
from msgspec import Raw, Struct

from agents.models import Attachment, Connection, Event
from agents.transcript.pieces import ApprovalDecided
from kit.iso import iso


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
    """The agent's program asks leave for a tool call."""

    request_id: str
    tool: str
    input_preview: str
    ts: str


class PermissionResolved(LiveMessage, frozen=True, tag="permission_resolved"):
    """Somebody decided (`allow`, `deny`), or nobody did in time (`expired`)."""

    request_id: str
    decision: str
    resolver_login: str | None


class PresenceMessage(LiveMessage, frozen=True, omit_defaults=True, tag="presence"):
    """Who is attached now, by login, and who just came or left."""

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


def processes_watching(session_ids: Collection[int]) -> dict[int, set[str]]:
    """The processes that hold watchers of these sessions."""
    found: dict[int, set[str]] = {}
    for session_id, process_id in Attachment.objects.filter(session_id__in=session_ids).values_list(
        "session_id", "process_id"
    ):
        found.setdefault(session_id, set()).add(process_id)
    return found


def seen(session_public_id: str, event: Event) -> EventMessage:
    """An event as its message."""
    return seen_event(session_public_id, event.kind, event.type, event.payload, event.ts)


def seen_event(session_public_id: str, kind: str, type_: str, payload: str, ts: datetime) -> EventMessage:
    """The parts of an event as its message; `payload` is JSON text."""
    return EventMessage(session_public_id, SeenEvent(kind, type_, msgspec.Raw(payload.encode()), iso(ts)))


Decision = Literal["allow", "deny", "expired"]


class Tell(Struct, frozen=True, tag="tell"):
    """A finished frame for the agent of a connection; its delivery is not confirmed, and it may be lost."""

    connection_id: int
    frame: Raw


class Resolution(Struct, frozen=True):
    """How a permission request ended; `message`: of whom decided it, if they wrote one."""

    request_id: str
    decision: Decision
    message: str | None = None


class PermissionDecided(Struct, frozen=True, tag="permission_decided"):
    """To the agent of a connection: how its permission request ended. It may be lost.

    `piece`: what the caller of the turn `chat_id` is told.
    """

    connection_id: int
    resolution: Resolution
    chat_id: str = ""
    piece: ApprovalDecided | None = None


class Dismiss(Struct, frozen=True, tag="dismiss"):
    """The session of a connection is gone: the agent is told not to come back."""

    connection_id: int
    reason: str


class Live(Struct, frozen=True, tag="live"):
    """A finished frame for the operators of a session whom the receiving process holds."""

    session_id: int
    frame: Raw


class Oust(Struct, frozen=True, tag="oust"):
    """A user lost their share of a session, or part of it: their operators' sockets look again."""

    session_id: int
    user_id: int


Message = Tell | PermissionDecided | Dismiss | Live | Oust
Addressed = tuple[str, Message]  # a process, and what to tell it
Carrier = Callable[[Sequence[Addressed]], None]

_carriers: list[Carrier] = []


def carry_by(carrier: Carrier) -> None:
    """The hub process hands down who carries messages from any thread to their processes."""
    _carriers[:] = [carrier]


def announce(session_id: int, *messages: LiveMessage) -> None:
    """Show these to whoever watches the session (its row id), after the commit."""
    transaction.on_commit(lambda: _carry(_live(session_id, messages)))


def oust(session_id: int, user_id: int) -> None:
    """A user's share of a session became less: their live views end, after the commit."""
    transaction.on_commit(
        lambda: _carry([(process, Oust(session_id, user_id)) for process in _processes(session_id)])
    )


def tell_agent(session_id: int, frame: bytes) -> bool:
    """Send a finished frame to the session's agent after the commit; False when none is connected."""
    return _to_agent(session_id, lambda connection_id: Tell(connection_id, Raw(frame)))


def tell_resolution(
    session_id: int, resolution: Resolution, chat_id: str = "", piece: ApprovalDecided | None = None
) -> bool:
    """Tell the session's agent how its permission request ended, after the commit; False when none is connected.

    `chat_id`, `piece`: see `PermissionDecided`.
    """
    return _to_agent(
        session_id, lambda connection_id: PermissionDecided(connection_id, resolution, chat_id, piece)
    )


def dismiss_agent(session_id: int, reason: str) -> None:
    """Call before the session's row goes: its agent, if connected, is told for good after the commit."""
    found = Connection.objects.filter(session_id=session_id).values_list("process_id", "pk")
    addressed: list[Addressed] = [(process, Dismiss(pk, reason)) for process, pk in found]
    transaction.on_commit(lambda: _carry(addressed))


def dismiss_operators(session_id: int) -> None:
    """Call before the session's row goes: those who watch it look again after the commit, and find it gone."""
    found = Attachment.objects.filter(session_id=session_id).values_list("process_id", "user_id").distinct()
    addressed: list[Addressed] = [(process, Oust(session_id, user_id)) for process, user_id in found]
    transaction.on_commit(lambda: _carry(addressed))


def _to_agent(session_id: int, message: Callable[[int], Message]) -> bool:
    """Send what `message` makes for the id of the connection."""
    found = Connection.objects.filter(session_id=session_id).values_list("process_id", "pk").first()
    if found is None:
        return False
    process_id, connection_id = found
    transaction.on_commit(lambda: _carry([(process_id, message(connection_id))]))
    return True


def _live(session_id: int, messages: Sequence[LiveMessage]) -> list[Addressed]:
    processes = _processes(session_id)
    return [(process, Live(session_id, Raw(encode(one)))) for one in messages for process in processes]


def _processes(session_id: int) -> set[str]:
    return processes_watching([session_id]).get(session_id, set()) if _carriers else set()


def _carry(addressed: Sequence[Addressed]) -> None:
    if addressed:
        for carrier in _carriers:
            carrier(addressed)
