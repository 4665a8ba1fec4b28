"""The frames of the prototype's clients in `a2a-v1`. No I/O.

Each function gets a frame and the name of the agent in the address of its client, which wins over names in frames.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from gateway.wire.envelope import Json

BARE = (
    "bareContent"  # in the metadata: the content had no role, and its recipient in the dialect gets it as it was
)


def is_frame(value: object) -> bool:
    """Whether it is an object with a type; what else is wrong in it is found when it is translated."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and isinstance(value.get("metadata", {}), dict)
    )


def find_reply_to(frame: Json) -> str:
    """The id of the message that a message answers, as `sendResponse` of the prototype's client says it."""
    content = frame.get("content")
    text = content.get("content") if isinstance(content, dict) else None
    if not isinstance(text, str) or '"in_reply_to"' not in text:
        return ""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    found = said.get("in_reply_to") if isinstance(said, dict) and said.get("type") == "response" else None
    return found if isinstance(found, str) else ""


def _read_register(frame: Json, name: str) -> Json:
    """A list of agents: its `from` takes the seat."""
    return {"type": "discovery", "content": {"action": "list"}, "from": name or frame.get("agentId")}


def _read_discover(frame: Json, name: str) -> Json:
    return {"type": "discovery", "content": {"action": "list"}}


def _read_health(frame: Json, name: str) -> Json:
    return {"type": "request", "content": {"service": "gateway.status"}}


def _read_message(frame: Json, name: str) -> Json:
    content = frame.get("content", frame.get("message"))
    is_whole = isinstance(content, dict) and isinstance(content.get("role"), str) and "content" in content
    made = _copy(frame, name, "message")
    if not is_whole:
        made["metadata"] = {**frame.get("metadata", {}), BARE: True}
    made["content"] = content if is_whole else {"role": "user", "content": content}
    if "agent" not in made and "to" in frame:
        made["agent"] = frame["to"]
    return made


def _read_response(frame: Json, name: str) -> Json:
    content = frame.get("content", frame.get("response"))
    is_whole = isinstance(content, dict) and ("result" in content or "error" in content)
    return _copy(frame, name, "response") | {"content": content if is_whole else {"result": content}}


def _read_broadcast(frame: Json, name: str) -> Json:
    return _copy(frame, name, "message") | {"content": {"message": get_broadcast_text(frame)}}


def get_broadcast_text(frame: Json) -> Any:
    """What a broadcast says, as its recipients get it."""
    content = frame.get("content", frame.get("message"))
    return content["message"] if isinstance(content, dict) and "message" in content else content


def _read_vote(frame: Json, name: str) -> Json:
    content = {key: frame[key] for key in ("proposalId", "vote", "reasoning", "confidence") if key in frame}
    voter = {"from": frame["voter"]} if "voter" in frame and not name else {}
    return {"type": "vote", "content": content, **voter}


def _copy(frame: Json, name: str, besides: str) -> Json:
    """The members of a frame but `besides`, and but its sender where the address has named it."""
    left_out = {besides, "correlationId", *(("from",) if name else ())}
    return {key: value for key, value in frame.items() if key not in left_out}


READERS: Mapping[Any, Callable[[Json, str], Json]] = {
    "register": _read_register,
    "discover": _read_discover,
    "health": _read_health,
    "message": _read_message,
    "response": _read_response,
    "broadcast": _read_broadcast,
    "vote_submission": _read_vote,
}
