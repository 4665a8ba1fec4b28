"""What operators of a session see while it happens: the messages, and who watches in this process.

Operators are told after the commit, at most once, and a slow one is dropped: the rows are the truth, a live
view is a convenience. Which process has watchers of a session is data (`Attachment`), docs/adr/0032.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from agents.models import Attachment, Event
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
