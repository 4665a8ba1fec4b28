"""The frames that the gateway sends, as JSON."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.wire.envelope import Envelope, Json
from gateway.wire.errors import FrameRefused
from gateway.wire.protocol import VERSION
from kit.ids import unguessable

GATEWAY = "gateway"


def encode(frame: Json) -> bytes:
    """A frame as it is sent."""
    return msgspec.json.encode(frame)


def now_ms() -> int:
    """The time as the protocol writes it: Unix milliseconds."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """An id for a frame that came without one."""
    return unguessable("msg-")


def stamp(envelope: Envelope) -> Envelope:
    """The envelope with an id and a time, where its sender gave none."""
    if envelope.id and envelope.timestamp_ms is not None:
        return envelope
    stamped_ms = now_ms() if envelope.timestamp_ms is None else envelope.timestamp_ms
    return replace(envelope, id=envelope.id or new_id(), timestamp_ms=stamped_ms)


def make_frame(type_name: str, content: Json, metadata: Json | None = None, **fields: Any) -> Json:
    """A frame of the gateway itself, with its time."""
    frame = {"type": type_name, "from": GATEWAY, "timestamp": now_ms(), **fields, "content": content}
    return {**frame, "metadata": metadata} if metadata else frame


def answer_frame(envelope: Envelope, type_name: str, content: Json) -> Json:
    """A frame that answers another, with the ids of that one."""
    return make_frame(type_name, content, _about(envelope.correlation_id, envelope.id))


def describe_error(refused: FrameRefused) -> Json:
    """An error as the content of a frame shows it."""
    shown: Json = {"error": refused.code.name, "code": int(refused.code), "message": str(refused)}
    more = {"reason": refused.reason, "field": refused.field, "retryAfterMs": refused.retry_after_ms}
    return shown | {key: value for key, value in more.items() if value}


def error_frame(refused: FrameRefused) -> Json:
    """An error; its name stands beside `content` and in it, as both registries have it."""
    metadata = _about(refused.correlation_id, refused.frame_id)
    return make_frame("error", describe_error(refused), metadata, error=refused.code.name)


def acknowledge_frame(client_id: str, agents: Sequence[str]) -> Json:
    """The answer to an advertised handshake."""
    content = {
        "action": "acknowledge",
        "clientId": client_id,
        "availableAgents": list(agents),
        "protocolVersion": VERSION,
    }
    return make_frame("handshake", content)


def pong_frame(ping: Json, correlation_id: str) -> Json:
    """The answer to a ping, with what the ping says of its sender."""
    received_at = now_ms()
    content: Json = {}
    if "heartbeat" in ping:
        content["heartbeat"] = {"received": received_at, "agentHeartbeat": ping["heartbeat"]}
    return make_frame("pong", content, {"correlationId": correlation_id} if correlation_id else None)


def disconnect_frame(reason: str, message: str = "", *, code: str = "") -> Json:
    """The last frame before the gateway closes. `code`: for programs, where `reason` does not say enough."""
    more = {"message": message, "code": code}
    return make_frame("disconnect", {"reason": reason} | {key: value for key, value in more.items() if value})


def auth_frame(status: str, **more: Any) -> Json:
    """The answer to `auth`: `authenticated` or `rejected`."""
    return make_frame("auth-response", {"status": status, **more})


def _about(correlation_id: str, parent_id: str) -> Json:
    about = {"correlationId": correlation_id, "parentId": parent_id}
    return {key: value for key, value in about.items() if value}
