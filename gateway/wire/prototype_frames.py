"""Translates frames of the prototype to `a2a-v1`, and back (docs/adr/0133). The module does no I/O.

`READERS` translate the frames of clients. Each reader gets a frame and the name of the agent in the address of its
client, which takes precedence over names in frames. The functions `show_…` make the frames for clients.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.wire.errors import GatewayErrorCode
from gateway.wire.frames import Json, now_ms
from kit.newest import NewestEntries

OFFLINE = "offline"

# A key of the metadata: the content had no role, so recipients in the dialect get the content unchanged.
BARE = "bareContent"
MAX_OPEN = 200


@dataclass
class AskedFrame:
    """A frame of the client to which the hub has not sent the last answer. `made`: the frame in `a2a-v1`.

    `is_queued`: the client knows that its message waits. `is_sent_again`: sent again, to the recipient's inbox.
    """

    frame: Json
    made: Json
    is_queued: bool = False
    is_sent_again: bool = False

    @property
    def type(self) -> str:
        """The type of the client's frame."""
        return str(self.frame["type"])

    @property
    def is_told(self) -> bool:
        """True if the frame is a message that is answered only if it fails."""
        return self.type == "message" and self.made["metadata"].get("requiresResponse") is not True


class OpenFrames:
    """Finds unanswered frames by correlation id; keeps the latest MAX_OPEN of each kind."""

    def __init__(self) -> None:
        self._answered = NewestEntries[str, AskedFrame](MAX_OPEN)
        self._told = NewestEntries[str, AskedFrame](MAX_OPEN)  # apart: many tells push out no other frame
        # Messages for the client, under their correlation id and under their frame id: both ids.
        self._of_client = NewestEntries[str, tuple[str, str]](MAX_OPEN)

    def add(self, correlation_id: object, asked: AskedFrame) -> None:
        """Note a frame of the client."""
        if isinstance(correlation_id, str):
            (self._told if asked.is_told else self._answered)[correlation_id] = asked

    def find(self, correlation_id: str) -> AskedFrame | None:
        """The frame of the client that has this id."""
        return self._answered.get(correlation_id) or self._told.get(correlation_id)

    def close(self, correlation_id: str) -> None:
        """Note that a frame of the client got its last answer."""
        self._answered.pop(correlation_id, None)
        self._told.pop(correlation_id, None)

    def add_message(self, correlation_id: str, frame_id: str) -> None:
        """Note a message that the client is to answer."""
        for known in (correlation_id, frame_id):
            self._of_client[known] = (correlation_id, frame_id)

    def find_message(self, known: str) -> str:
        """The correlation id of a message that the client is to answer; empty if there is none.

        `known`: the correlation id, or the id of the frame.
        """
        return self._of_client.get(known, ("", ""))[0]

    def answer_message(self, correlation_id: object) -> bool:
        """Note that the client answers a message; False: the client got no such message."""
        if not isinstance(correlation_id, str) or correlation_id not in self._of_client:
            return False
        for known in self._of_client[correlation_id]:
            self._of_client.pop(known, None)
        return True


def is_frame(value: object) -> bool:
    """True if the value is an object with a type; other faults are found in the translation."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and isinstance(value.get("metadata", {}), dict)
    )


def find_reply_to(frame: Json) -> str:
    """The id of the message that a message answers, from the field of the prototype's `sendResponse`."""
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
    """A `discovery` frame, whose `from` takes the seat."""
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
    """The content of a broadcast as its recipients get it."""
    content = frame.get("content", frame.get("message"))
    return content["message"] if isinstance(content, dict) and "message" in content else content


def _read_vote(frame: Json, name: str) -> Json:
    content = {key: frame[key] for key in ("proposalId", "vote", "reasoning", "confidence") if key in frame}
    voter = {"from": frame["voter"]} if "voter" in frame and not name else {}
    return {"type": "vote", "content": content, **voter}


def _copy(frame: Json, name: str, besides: str) -> Json:
    """The members of a frame without `besides`, and without the sender if the address names the sender."""
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


def show_registered(agents: Sequence[Json], name: str) -> Json:
    """The answer to `register`."""
    return {"type": "registered", "agentId": name, "connectedAgents": _connected(agents)}


def show_discovered(agents: Sequence[Json]) -> Json:
    """The answer to `discover`."""
    names = [one["name"] for one in agents]
    return {"type": "discover", "connectedAgents": _connected(agents), "registeredAgents": names}


def show_broadcast(said: Any, result: Json, sender: str) -> list[Json]:
    """The broadcast, which reaches its sender, too, and its result.

    `sender`: empty if the sender is not an agent.
    """
    shown = {"type": "broadcast-result", **result}
    if not sender:
        return [shown]
    shown["results"] = [*result["results"], {"agentId": sender, "success": True}]
    own = {"type": "broadcast", "content": said, "from": sender}
    return [own, shown | {"totalSent": result["totalSent"] + 1}]


def show_pong(heartbeat: Json, received: str, name: str) -> Json:
    """A pong, whose timestamp is a number."""
    told = {"received": received, "agentHeartbeat": heartbeat.get("agentHeartbeat", {})}
    return {"type": "pong", "timestamp": now_ms(), "agentId": name or None, "heartbeat": told}


def show_error(content: Json, asked: AskedFrame | None) -> Json | None:
    """An error, with the prototype's text if the prototype has this error; None: the prototype sends nothing."""
    code, field = content.get("code"), content.get("field")
    shown: Json = {"type": "error", "error": content.get("message"), "code": code}
    if asked is None:
        if code == GatewayErrorCode.UNKNOWN_TYPE or field == "type":
            return None
        if code == GatewayErrorCode.INVALID_JSON:
            return shown | {"error": "Invalid JSON format", "details": content.get("message")}
        return shown | ({"error": "Message processing failed"} if field == "$" else {})
    if asked.type == "register" and field == "from" and not asked.made["from"]:
        return shown | {"error": "Agent ID required for registration"}
    if asked.type == "message" and code == GatewayErrorCode.MISSING_FIELD and field == "agent":
        return shown | {"error": "Target agent required"}
    if asked.type == "message" and code == GatewayErrorCode.AGENT_NOT_FOUND:
        return shown | show_not_connected(asked, is_queued=False)
    return shown


def show_not_connected(asked: AskedFrame, *, is_queued: bool) -> Json:
    """The error for a message that its recipient did not get. `is_queued`: the message waits."""
    return {"type": "error", "error": f"Agent {asked.made.get('agent')} is not connected", "queued": is_queued}


def _connected(agents: Sequence[Json]) -> list[str]:
    return [one["name"] for one in agents if one["status"] != OFFLINE]
