"""Frames of the protocol `a2a-v1` of agent teams: text in, frozen values out, and back. The module does no I/O."""

import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from clawbridge.connect.frames import UnreadableFrame
from clawbridge.connect.reply_parts import text_of

SUBPROTOCOL = "a2a-v1"
VERSION = "1.0.0"
AGENT_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
VOTES = ("approve", "reject", "abstain")

Json = dict[str, Any]


class ConnectionState(IntEnum):
    """The states of a connection, with the numbers of the protocol."""

    CONNECTING = 0
    OPEN = 1
    CLOSING = 2
    CLOSED = 3


class GatewayError(Exception):
    """An error of the gateway, or of the agent that was asked. `code`, `name`: of the protocol's registry."""

    def __init__(self, code: int, name: str, message: str, reason: str = "") -> None:
        super().__init__(f"{name} ({code}): {message}" + (f" ({reason})" if reason else ""))
        self.code = code
        self.name = name
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class GatewayFrame:
    """A frame as it was received; `fields`: all of it."""

    type: str
    content: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    id: str = ""
    sender: str = ""
    session_id: str = ""
    fields: Json = field(default_factory=dict)

    @property
    def correlation_id(self) -> str:
        """The id that ties the frame to another frame; empty without one."""
        return text_of(self.metadata, "correlationId")

    @property
    def wants_response(self) -> bool:
        """True if its sender waits for a reply."""
        return self.metadata.get("requiresResponse") is True

    @property
    def text(self) -> str:
        """The text of a message or a proposal; an object as JSON."""
        said = self.content.get("proposal") if self.type == "proposal" else self.content.get("content")
        return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)

    @property
    def error(self) -> GatewayError | None:
        """The error that the frame is, or that its content holds."""
        found = self.content if self.type == "error" else self.content.get("error")
        if not isinstance(found, dict):
            return None if found is None else GatewayError(0, str(found), text_of(self.content, "message"))
        code = found.get("code")
        name = text_of(found, "error") or text_of(self.fields, "error")
        return GatewayError(
            code if isinstance(code, int) else 0, name, text_of(found, "message"), text_of(found, "reason")
        )


def read_frame(fields: Json) -> GatewayFrame:
    """Read one frame.

    Raises:
        UnreadableFrame: the object is no frame.
    """
    if not isinstance(fields.get("type"), str):
        raise UnreadableFrame("not an object with a type")
    content, metadata = fields.get("content"), fields.get("metadata")
    return GatewayFrame(
        type=fields["type"],
        content=content if isinstance(content, dict) else {},
        metadata=metadata if isinstance(metadata, dict) else {},
        id=text_of(fields, "id"),
        sender=text_of(fields, "from"),
        session_id=text_of(fields, "sessionId"),
        fields=fields,
    )


def encode(type_name: str, content: Mapping[str, Any], **more: Any) -> str:
    """Write a frame with an id and the time; `more`: further fields, those that are empty are left out."""
    frame: Json = {"type": type_name, "id": new_id("msg"), "timestamp": int(time.time() * 1000)}
    frame |= {"content": dict(content), **{name: value for name, value in more.items() if value}}
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def handshake() -> str:
    """The first frame of a client."""
    return encode("handshake", {"action": "advertise", "capabilities": {"version": VERSION}})


def reply(to: GatewayFrame, content: str | Json) -> str:
    """The answer to a message."""
    return encode(
        "message",
        {"role": "agent", "content": content},
        agent=to.sender,
        metadata=_about(to),
        sessionId=to.session_id,
    )


def failure(to: GatewayFrame, reason: str) -> str:
    """The error frame that tells the sender of a message that there is no answer."""
    content = {"error": "AGENT_ERROR", "code": 3004, "message": reason}
    return encode("error", content, error="AGENT_ERROR", metadata=_about(to))


def vote(proposal: GatewayFrame, choice: str, reasoning: str = "") -> str:
    """A vote on a proposal: `approve`, `reject` or `abstain`."""
    content = {"proposalId": proposal_id(proposal), "vote": choice}
    return encode("vote", content | ({"reasoning": reasoning} if reasoning else {}), metadata=_about(proposal))


def proposal_id(proposal: GatewayFrame) -> str:
    """The id of a proposal that was received."""
    return text_of(proposal.content, "proposalId") or proposal.correlation_id or proposal.id


def read_vote(text: str) -> tuple[str, str]:
    """The vote that a text begins with, and the text; `abstain` where it begins with none."""
    first = re.match(r"\W*(\w+)", text)
    word = first.group(1).lower() if first else ""
    return (word if word in VOTES else "abstain"), text.strip()


def new_id(kind: str) -> str:
    """An id that no other frame has."""
    return f"{kind}-{uuid.uuid4()}"


def _about(frame: GatewayFrame) -> Json:
    about = {"correlationId": frame.correlation_id, "parentId": frame.id}
    return {name: value for name, value in about.items() if value}
