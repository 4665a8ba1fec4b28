"""ACL messages of FIPA as frames of `a2a-v1`, and frames as ACL messages.

The module does no I/O and reads no clock.

An ACL message is a JSON object with the parameters of FIPA's standard as keys. Members that a frame has no place
for are kept in its `metadata.fipa`, so that a message comes back as it was.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.wire.errors import GatewayErrorCode, bad_content, bad_type, missing
from gateway.wire.frame_types import ROLES, read_time_ms
from gateway.wire.frames import Envelope, Json, kept_in, read_text, show_time

LANGUAGE, ONTOLOGY = "json", "heretek-v1"
CANCEL = "cancel"
MAX_RECEIVERS = 100
# Parameters that a frame has as fields; all other parameters stay in `metadata.fipa`.
MAPPED = frozenset({"sender", "receiver", "content", "conversation-id", "reply-with", "in-reply-to", "reply-by"})
FRAME_OF = {  # messages with any other performative are of type `message`
    **dict.fromkeys(("request", "request-when", "request-whenever", "query-if", "query-ref", CANCEL), "request"),
    **dict.fromkeys(("agree", "refuse", "failure"), "response"),
    **dict.fromkeys(("propose", "cfp"), "proposal"),
    **dict.fromkeys(("accept-proposal", "reject-proposal"), "decision"),
    "not-understood": "error",
    "subscribe": "subscribe",
    "propagate": "broadcast",
}
NEEDS_CONTENT = frozenset({"message", "proposal", "subscribe", "broadcast"})
CONTENT_KEYS = {  # what says that a content has the form of the frame's own
    "message": "role",
    "broadcast": "message",
    "request": "service",
    "proposal": "proposal",
    "subscribe": "channel",
}
REPLIES = frozenset({"response", "decision", "error"})
ASKS = frozenset({"request", "proposal"})  # types of frames that always get an answer
NOT_UNDERSTOOD = frozenset({GatewayErrorCode.UNKNOWN_TYPE, GatewayErrorCode.INVALID_CONTENT})
VOTE_OF = {"agree": "approve", "refuse": "reject"}
PERFORMATIVE_OF_VOTE = {vote: performative for performative, vote in VOTE_OF.items()}
RESULT_OF = {"accept-proposal": "approved", "reject-proposal": "rejected"}


def to_acl(frame: Json) -> Json:
    """A frame as an ACL message."""
    metadata = frame.get("metadata", {})
    kept = kept_in(metadata, "fipa")
    performative = performative_of(frame)
    correlation_id, is_ask = metadata.get("correlationId"), _asks(frame)
    acl = {
        **{key: value for key, value in kept.items() if key not in ("wrapped", "receiver")},
        "performative": performative,
        "sender": frame.get("from"),
        "receiver": kept.get("receiver", frame.get("agent")),
        "content": _content_out(frame, kept.get("wrapped", "")),
        "language": kept.get("language", LANGUAGE),
        "ontology": kept.get("ontology", ONTOLOGY),
        "conversation-id": metadata.get("threadId"),
        "reply-with": correlation_id if is_ask else None,
        "in-reply-to": metadata.get("parentId") if is_ask else correlation_id,
        "reply-by": _reply_by(frame, metadata),
    }
    return {key: value for key, value in acl.items() if value is not None}


def from_acl(acl: Mapping[str, Any], now_ms: int) -> Json:
    """An ACL message as a frame.

    Raises:
        FrameRefused: 2002, 2003, 2005; `field` names the parameter.
    """
    performative = read_text(acl, "performative").lower()
    if not performative:
        raise missing("performative is missing", field="performative")
    receivers = _read_receivers(acl)
    type_name = FRAME_OF.get(performative, "message")
    if type_name == "message" and len(receivers) > 1:
        type_name = "broadcast"
    kept = {key: value for key, value in acl.items() if key not in MAPPED} | {"performative": performative}
    if acl.get("content") is None and type_name in NEEDS_CONTENT:
        raise missing("content is missing", field="content")
    content, wrapped = _content_in(type_name, performative, acl.get("content"))
    reply_with, in_reply_to = read_text(acl, "reply-with"), read_text(acl, "in-reply-to")
    is_reply = type_name in REPLIES
    metadata: Json = {
        "threadId": read_text(acl, "conversation-id"),
        "correlationId": (in_reply_to or reply_with) if is_reply else (reply_with or in_reply_to),
        "parentId": in_reply_to if reply_with and not is_reply else "",
    }
    if reply_with and not is_reply:
        metadata["requiresResponse"] = True
    if (reply_by_ms := _read_reply_by(acl)) is not None:
        if reply_by_ms <= now_ms:
            raise bad_content("reply-by has passed", field="reply-by")
        metadata["ttl"] = (reply_by_ms - now_ms) / 1000
        if type_name == "proposal":
            content = {"deadline": reply_by_ms} | content
    if wrapped:
        kept["wrapped"] = wrapped
    if len(receivers) > 1:
        kept["receiver"] = receivers
    frame = {"type": type_name, "content": content, "from": _read_name(acl.get("sender"), "sender")}
    frame["agent"] = receivers[0] if len(receivers) == 1 else ""
    frame = {key: value for key, value in frame.items() if value != ""}
    return frame | {"metadata": {key: value for key, value in metadata.items() if value != ""} | {"fipa": kept}}


def as_information(envelope: Envelope) -> Envelope:
    """A message about a reply or a decision, for an agent of another team.

    The recipient could take a frame of type `response` or `decision` for one of its own team.
    """
    content = {"role": "agent", "content": {envelope.type: envelope.content}}
    metadata = {key: value for key, value in envelope.metadata.items() if key != "requiresResponse"}
    return msgspec.structs.replace(envelope, type="message", content=content, metadata=metadata)


def performative_of(frame: Json) -> str:
    """The performative of a frame: the one that it came with, else that of its type."""
    came_with = kept_in(frame.get("metadata", {}), "fipa").get("performative")
    if isinstance(came_with, str) and FRAME_OF.get(came_with, "message") in (frame["type"], "message"):
        return came_with
    content = frame.get("content", {})
    match frame["type"]:
        case "request":
            return CANCEL if content.get("service") == CANCEL else "request"
        case "response":
            return _performative_of_response(content)
        case "vote":
            return PERFORMATIVE_OF_VOTE.get(content.get("vote"), "inform")
        case "proposal":
            return "propose"
        case "decision":
            return "accept-proposal" if content.get("result") == "approved" else "reject-proposal"
        case "error":
            return "not-understood" if content.get("code") in NOT_UNDERSTOOD else "failure"
        case "subscribe":
            return "subscribe"
    return "inform"


def _performative_of_response(content: Json) -> str:
    if content.get("error") is not None:
        return "failure"
    result = content.get("result")
    vote = result.get("vote") if isinstance(result, dict) else None
    return PERFORMATIVE_OF_VOTE.get(vote, "inform") if isinstance(vote, str) else "inform"


def _asks(frame: Json) -> bool:
    return frame["type"] in ASKS or frame.get("metadata", {}).get("requiresResponse") is True


def _content_in(type_name: str, performative: str, given: Any) -> tuple[Json, str]:
    """The content of a frame, and the path in it at which the content of the ACL message lies; empty: it is all.

    Content in the form of the frame's own content is taken as it is.
    """
    key = CONTENT_KEYS.get(type_name, "")
    is_own = isinstance(given, dict) and isinstance(given.get(key), str) and performative != CANCEL
    if is_own and (type_name != "message" or (given["role"] in ROLES and "content" in given)):
        return given, ""
    match type_name:
        case "message":
            text, path = _wrap(given)
            return {"role": "agent", "content": text}, f"content{path}"
        case "broadcast":
            text, path = _wrap(given)
            return {"message": text}, f"message{path}"
        case "request" if performative == CANCEL or not isinstance(given, str):
            return {"service": performative, "params": {"content": given}}, "params.content"
        case "response" if performative == "failure":
            error = {
                "code": GatewayErrorCode.AGENT_ERROR.value,
                "error": GatewayErrorCode.AGENT_ERROR.name,
                "message": given,
            }
            return {"error": error}, "error.message"
        case "response":
            return {"result": {"vote": VOTE_OF[performative], "reason": given}}, "result.reason"
        case "decision":
            return {"result": RESULT_OF[performative], "reason": given}, "reason"
        case "error":
            code = GatewayErrorCode.UNKNOWN_TYPE
            return {"error": code.name, "code": code.value, "message": given}, "message"
    if isinstance(given, str):
        return {key: given}, key
    return {key: msgspec.json.encode(given).decode()}, ""


def _wrap(given: Any) -> tuple[str | Json, str]:
    """The value that a frame takes as the text of a message, and the path in it: other values lie in an object."""
    return (given, "") if isinstance(given, str | dict) else ({"value": given}, ".value")


def _content_out(frame: Json, wrapped: object) -> Any:
    """The content of an ACL message: what it was when it came, else that of the frame."""
    content = frame.get("content", {})
    value: Any = content
    for key in filter(None, str(wrapped).split(".")):
        if not isinstance(value, dict) or key not in value:
            return content
        value = value[key]
    return value


def _read_receivers(acl: Mapping[str, Any]) -> list[str]:
    given = acl.get("receiver")
    many = given if isinstance(given, list) else [] if given is None else [given]
    if len(many) > MAX_RECEIVERS:
        raise bad_content(f"receiver: at most {MAX_RECEIVERS}", field="receiver")
    return [_read_name(one, "receiver") for one in many]


def _read_name(given: Any, field: str) -> str:
    """The name of an agent: a text, or an agent identifier with a `name`."""
    name = given.get("name") if isinstance(given, dict) else given
    if name is not None and not isinstance(name, str):
        raise bad_type(f"{field}: want the name of an agent", field=field)
    return name or ""


def _read_reply_by(acl: Mapping[str, Any]) -> int | None:
    """The time in milliseconds: given so, or as ISO 8601; without a zone it is UTC."""
    value = acl.get("reply-by")
    if value is None:
        return None
    reply_by_ms = None if isinstance(value, float) else read_time_ms(value)
    if reply_by_ms is None:
        raise bad_type("reply-by: want milliseconds, or a time as ISO 8601", field="reply-by")
    return reply_by_ms


def _reply_by(frame: Json, metadata: Json) -> str | None:
    """The time from which a reply is late: the deadline of a proposal, else `ttl` after the time of the frame."""
    deadline = frame.get("content", {}).get("deadline") if frame["type"] == "proposal" else None
    if deadline is None and "ttl" in metadata and isinstance(frame.get("timestamp"), int | float):
        deadline = frame["timestamp"] + metadata["ttl"] * 1000
    return show_time(deadline)
