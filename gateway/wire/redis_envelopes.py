"""Envelopes of the team's older transport, Redis, as frames of `a2a-v1` and back. The module does no I/O.

The two dialects are `envelope`, as published to channels, and `inbox`, as kept in lists of agents. Members that
a frame has no place for are kept in its `metadata.legacy`.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from gateway.wire.channels import GENERAL, STATUS, inbox_channel
from gateway.wire.errors import bad_type, missing
from gateway.wire.frame_types import ROLES, read_iso
from gateway.wire.frames import Json, kept_in, read_text, show_time
from kit.clock import unix_ms

Dialect = Literal["envelope", "inbox"]

DIALECTS: tuple[Dialect, ...] = ("envelope", "inbox")
INBOX_CHANNEL = re.compile(r"agent:([^:]+):inbox")
SECONDS_UNTIL = 100_000_000_000  # a smaller time is in seconds: as milliseconds it would be in 1973
KEPT_TYPES = frozenset(  # any other, such as `question`, is a message
    {"proposal", "decision", "request", "response", "vote", "status", "error"}
)
ENVELOPE_KEYS = frozenset(
    {"id", "type", "from", "to", "channel", "content", "timestamp", "threadId", "parentId", "metadata"}
)
INBOX_KEYS = frozenset(
    {"messageId", "from", "to", "content", "timestamp", "priority", "type", "inReplyTo", "metadata"}
)


def from_legacy(envelope: Mapping[str, Any]) -> Json:
    """An envelope of either dialect as a frame.

    Raises:
        FrameRefused: 2002, 2003; `field` names what is wrong.
    """
    frame = _from_inbox(envelope) if "messageId" in envelope else _from_envelope(envelope)
    metadata = {key: value for key, value in frame["metadata"].items() if value not in (None, "")}
    return {key: value for key, value in frame.items() if value not in (None, "")} | {"metadata": metadata}


def to_legacy(frame: Json, dialect: Dialect) -> Json:
    """A frame as an envelope of a dialect; `inbox` has texts alone, so an object becomes its JSON there."""
    made = _to_inbox(frame) if dialect == "inbox" else _to_envelope(frame)
    return {key: value for key, value in made.items() if value is not None}


def _from_envelope(given: Mapping[str, Any]) -> Json:
    name = read_text(given, "type", is_required=True)
    channel, agent = read_text(given, "channel"), read_text(given, "to")
    metadata = _read_object(given, "metadata")
    if not agent and (found := INBOX_CHANNEL.fullmatch(channel)):
        agent = found[1]
    type_name = _type_of(name, channel, agent, metadata, given.get("content"))
    kept = {key: value for key, value in given.items() if key not in ENVELOPE_KEYS} | {"type": name}
    if channel:
        kept["channel"] = channel
    reply_to = {"correlationId": read_text(given, "parentId")} if type_name in ("response", "error") else {}
    return {
        "type": type_name,
        "id": read_text(given, "id"),
        "from": read_text(given, "from", is_required=True),
        "agent": agent,
        "timestamp": _read_time(given),
        "content": _content_in(type_name, given.get("content")),
        "metadata": {
            **metadata,
            "threadId": read_text(given, "threadId"),
            "parentId": read_text(given, "parentId"),
            **reply_to,
            "legacy": kept,
        },
    }


def _from_inbox(given: Mapping[str, Any]) -> Json:
    kept = {key: value for key, value in given.items() if key not in INBOX_KEYS}
    if name := read_text(given, "type"):
        kept["type"] = name
    return {
        "type": "message",
        "id": read_text(given, "messageId", is_required=True),
        "from": read_text(given, "from", is_required=True),
        "agent": read_text(given, "to", is_required=True),
        "timestamp": _read_time(given),
        "content": _content_in("message", given.get("content")),
        "metadata": {
            **_read_object(given, "metadata"),
            "priority": read_text(given, "priority"),
            "parentId": read_text(given, "inReplyTo"),
            "legacy": kept,
        },
    }


def _type_of(name: str, channel: str, agent: str, metadata: Json, content: Any) -> str:
    if metadata.get("consensusNeeded") is True:
        return "proposal"
    if channel == STATUS:
        return "status"
    if name == "request" and not (isinstance(content, dict) and isinstance(content.get("service"), str)):
        name = "question"  # of an agent, not of a service
    if name not in KEPT_TYPES:
        return "message" if agent or channel != GENERAL else "broadcast"
    return name


def _content_in(type_name: str, given: Any) -> Json:
    """The content of a frame of that type."""
    if given is None:
        raise missing("content is missing", field="content")
    match type_name, given:
        case "message", {"role": str(role), "content": str() | dict()} if role in ROLES:
            return dict(given)
        case "message", str() | dict():
            return {"role": "agent", "content": given}
        case "message", _:
            return {"role": "agent", "content": {"value": given}}
        case "broadcast", {"message": _}:
            return dict(given)
        case "broadcast", str() | dict():
            return {"message": given}
        case "response", dict() if "result" in given or "error" in given:
            return dict(given)
        case "response", _:
            return {"result": given}
        case _, dict():
            return dict(given)
    key = {"error": "message"}.get(type_name, type_name)
    return {key: given if isinstance(given, str) else {"value": given}}


def _to_envelope(frame: Json) -> Json:
    metadata = dict(frame.get("metadata", {}))
    kept = kept_in(metadata, "legacy")
    agent, type_name = frame.get("agent"), frame["type"]
    channel = inbox_channel(agent) if agent else STATUS if type_name == "status" else GENERAL
    shown = {key: metadata[key] for key in ("priority", "requiresResponse") if key in metadata}
    if type_name == "proposal":
        shown["consensusNeeded"] = True
    return {
        **{key: value for key, value in kept.items() if key not in ENVELOPE_KEYS},
        "id": frame.get("id"),
        "type": kept.get("type") or {"message": "question", "broadcast": "question"}.get(type_name, type_name),
        "from": frame.get("from"),
        "to": agent,
        "channel": kept.get("channel") or channel,
        "content": _content_out(frame),
        "timestamp": frame.get("timestamp"),
        "threadId": metadata.get("threadId"),
        "parentId": metadata.get("parentId"),
        "metadata": shown or None,
    }


def _to_inbox(frame: Json) -> Json:
    metadata = dict(frame.get("metadata", {}))
    kept, content = kept_in(metadata, "legacy"), _content_out(frame)
    own = {key: value for key, value in metadata.items() if key not in ("priority", "parentId", "legacy")}
    return {
        **{key: value for key, value in kept.items() if key not in INBOX_KEYS},
        "messageId": frame.get("id"),
        "from": frame.get("from"),
        "to": frame.get("agent"),
        "content": content if isinstance(content, str) else _json(content),
        "timestamp": show_time(frame.get("timestamp")),
        "priority": metadata.get("priority", "normal"),
        "type": kept.get("type") or "task",
        "inReplyTo": metadata.get("parentId"),
        "metadata": own or None,
    }


def _content_out(frame: Json) -> Any:
    content = frame.get("content", {})
    match frame["type"]:
        case "message" if content.get("role") == "agent":
            return content.get("content")
        case "broadcast" if content.keys() == {"message"}:
            return content["message"]
        case "response" if content.keys() == {"result"}:
            return content["result"]
    return content


def _read_object(given: Mapping[str, Any], field: str) -> Json:
    value = given.get(field)
    if value is not None and not isinstance(value, dict):
        raise bad_type(f"{field}: want an object", field=field)
    return value or {}


def _read_time(given: Mapping[str, Any]) -> int | None:
    """Milliseconds, of a time in seconds, in milliseconds or as ISO 8601."""
    value = given.get("timestamp")
    moment = read_iso(value) if isinstance(value, str) else None
    if moment is not None:
        return unix_ms(moment)
    if value is None:
        return None
    if isinstance(value, str | bool) or not isinstance(value, int | float):
        raise bad_type("timestamp: want a time", field="timestamp")
    return int(value * 1000) if 0 <= value < SECONDS_UNTIL else int(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
