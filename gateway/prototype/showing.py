"""Frames of the hub as clients of the prototype know them. No I/O."""

from collections.abc import Sequence
from typing import Any

from gateway.prototype.asked import AskedFrame
from gateway.wire.envelope import Json
from gateway.wire.errors import ErrorCode
from gateway.wire.frames import now_ms

OFFLINE = "offline"


def show_registered(agents: Sequence[Json], name: str) -> Json:
    """The answer to `register`."""
    return {"type": "registered", "agentId": name, "connectedAgents": _connected(agents)}


def show_discovered(agents: Sequence[Json]) -> Json:
    """The answer to `discover`."""
    names = [one["name"] for one in agents]
    return {"type": "discover", "connectedAgents": _connected(agents), "registeredAgents": names}


def show_broadcast(said: Any, result: Json, sender: str) -> list[Json]:
    """The result of a broadcast, after the broadcast itself, which reaches its sender, too.

    `sender`: empty, if it is no agent.
    """
    shown = {"type": "broadcast-result", **result}
    if not sender:
        return [shown]
    shown["results"] = [*result["results"], {"agentId": sender, "success": True}]
    own = {"type": "broadcast", "content": said, "from": sender}
    return [own, shown | {"totalSent": result["totalSent"] + 1}]


def show_pong(heartbeat: Json, received: str, name: str) -> Json:
    """A pong, whose own time is a number."""
    told = {"received": received, "agentHeartbeat": heartbeat.get("agentHeartbeat", {})}
    return {"type": "pong", "timestamp": now_ms(), "agentId": name or None, "heartbeat": told}


def show_error(content: Json, asked: AskedFrame | None) -> Json | None:
    """An error, in the prototype's words where the prototype has it; None: the prototype says nothing."""
    code, field = content.get("code"), content.get("field")
    shown: Json = {"type": "error", "error": content.get("message"), "code": code}
    if asked is None:
        if code == ErrorCode.UNKNOWN_TYPE or field == "type":
            return None
        if code == ErrorCode.INVALID_JSON:
            return shown | {"error": "Invalid JSON format", "details": content.get("message")}
        return shown | ({"error": "Message processing failed"} if field == "$" else {})
    if asked.type == "register" and field == "from" and not asked.made["from"]:
        return shown | {"error": "Agent ID required for registration"}
    if asked.type == "message" and code == ErrorCode.MISSING_FIELD and field == "agent":
        return shown | {"error": "Target agent required"}
    if asked.type == "message" and code == ErrorCode.AGENT_NOT_FOUND:
        return shown | show_not_connected(asked, is_queued=False)
    return shown


def show_not_connected(asked: AskedFrame, *, is_queued: bool) -> Json:
    """The error for a message that its recipient did not get. `is_queued`: it waits."""
    return {"type": "error", "error": f"Agent {asked.made.get('agent')} is not connected", "queued": is_queued}


def _connected(agents: Sequence[Json]) -> list[str]:
    return [one["name"] for one in agents if one["status"] != OFFLINE]
