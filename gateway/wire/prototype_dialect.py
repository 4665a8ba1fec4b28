"""The dialect of one socket: the frames of its client in `a2a-v1`, and those of the hub in the dialect.

The module does no I/O.

The frames are those that the prototype's own client and gateway send each other (docs/adr/0133). Frames that both
dialects have pass as they are.
"""

import json
from collections import deque
from collections.abc import Callable
from datetime import datetime

from agents.core.errors import Busy, Offline, OverCap
from gateway.wire.frames import LONGEST_TTL_S, MAX_FRAME_BYTES, VERSION, Json, show_time
from gateway.wire.prototype_frames import (
    BARE,
    READERS,
    AskedFrame,
    OpenFrames,
    find_reply_to,
    get_broadcast_text,
    is_frame,
    show_broadcast,
    show_discovered,
    show_error,
    show_not_connected,
    show_pong,
    show_registered,
)
from kit import strict_json
from kit.clock import iso
from kit.ids import unguessable

PREFIX = "prototype-"  # begins the correlation ids of frames whose sender gave none
NO_FRAME = "{}"  # replaces JSON that is no object: the prototype answers neither
LISTS = frozenset({"register", "discover"})
NOT_SENT = frozenset({Offline.reason, Busy.reason, OverCap.reason, "status_busy", "ttl_expired"})


class PrototypeDialect:
    """The frames of one socket, in both directions. `now`: the time that is written into frames.

    `name`: the agent in the client's address. `further`: frames for the hub besides those that the client sends.
    """

    def __init__(self, now: Callable[[], datetime], port: int, name: str = "") -> None:
        self.further: deque[str] = deque()
        self._now = now
        self._port = port
        self._name = name
        self._seat = name  # later the name that the client registers
        self._open = OpenFrames()

    def welcome(self) -> str:
        """The first frame of the gateway."""
        gateway = {"version": VERSION, "port": self._port}
        return self._encode({"type": "welcome", "clientId": unguessable("gw-"), "gateway": gateway})

    def read(self, text: str) -> str:
        """A message of the client in `a2a-v1`; an unreadable message is unchanged, so that the hub refuses it."""
        if len(text) > MAX_FRAME_BYTES:
            return text
        try:
            frame = strict_json.read(text, max_brackets=None, takes_any_text=True)
        except strict_json.UnreadableText:
            return text
        if not isinstance(frame, dict):
            return text if frame is None else NO_FRAME
        translate = READERS.get(frame.get("type")) if is_frame(frame) else None
        if translate is None:
            return text
        made = translate(frame, self._name)
        metadata: Json = {**frame.get("metadata", {}), **made.get("metadata", {})}
        made["metadata"] = metadata
        own_id = frame.get("correlationId", metadata.get("correlationId"))
        given = self._open.find_message(find_reply_to(frame)) or own_id
        if given is not None:
            metadata["correlationId"] = given
        if not self._open.answer_message(given) and frame["type"] != "response":
            metadata.setdefault("correlationId", unguessable(PREFIX))
            if frame["type"] == "message" and given is not None:
                metadata.setdefault("requiresResponse", True)
            self._open.add(metadata["correlationId"], AskedFrame(frame, made))
        return json.dumps(made)

    def write(self, text: str) -> list[str]:
        """A frame of the hub as frames of the dialect; empty if the dialect has no such frame."""
        frame = json.loads(text)
        correlation_id = frame.get("metadata", {}).get("correlationId", "")
        about = {"correlationId": correlation_id}
        if not correlation_id or correlation_id.startswith(PREFIX):
            about = {}
        asked = self._open.find(correlation_id)
        if frame["type"] == "event":
            return self._write_event(frame, asked, about)
        self._open.close(correlation_id)
        content = frame.get("content", {})
        match frame["type"], asked.type if asked else "":
            case "auth-response", _ if content.get("status") == "authenticated":
                shown: list[Json] = []
            case "error", _:
                shown = self._write_error(content, asked)
            case "response", "health" if "error" in content:
                shown = self._write_error(content["error"], asked)
            case "response", "health":
                shown = [{"type": "health", "status": content["result"]}]
            case "response", "broadcast" | "message" if asked and "result" in content:
                sender = self._seat if asked.type == "broadcast" else ""
                shown = show_broadcast(get_broadcast_text(asked.frame), content["result"] | about, sender)
                return [self._encode(one) for one in shown]
            case "response", _:
                shown = [{**frame, "content": content.get("result", content)}]
            case "discovery", "register" | "discover" if asked:
                shown = [self._write_agents(content["agents"], asked)]
            case "message", _:
                shown = [self._write_message(frame, asked, correlation_id)]
            case "broadcast", _:
                return [self._encode({**frame, "content": get_broadcast_text(frame)})]
            case "pong", _:
                heartbeat = content.get("heartbeat", {})
                shown_pong = show_pong(heartbeat, self._time_of(heartbeat.get("received")), self._seat)
                return [json.dumps(shown_pong | about)]
            case _:
                shown = [frame]
        return [self._encode(one | about) for one in shown]

    def _write_event(self, frame: Json, asked: AskedFrame | None, about: Json) -> list[str]:
        """An event of the hub; the event that the client's message waits becomes an error."""
        if asked is None or frame.get("content", {}).get("event") != "message.queued":
            # Without the id at the top: with the id the client would take the event for the answer.
            return [self._encode(frame)]
        is_news, asked.is_queued = not asked.is_queued, True
        return [self._encode(show_not_connected(asked, is_queued=True) | about)] if is_news else []

    def _write_error(self, content: Json, asked: AskedFrame | None) -> list[Json]:
        reason = content.get("reason", "")
        if asked is not None and asked.type in LISTS and reason == "isolated":
            # The client has its seat although it is isolated, and finds no other agent now.
            own = {"name": self._seat or asked.made.get("from"), "status": "online"}
            return [self._write_agents([own], asked)]
        if asked is not None and asked.type == "message" and reason in NOT_SENT:
            return [] if self._send_again(asked) else [show_not_connected(asked, is_queued=False)]
        shown = show_error(content, asked)
        return [] if shown is None else [shown]

    def _send_again(self, asked: AskedFrame) -> bool:
        """Put an unsent message into the inbox of its recipient, as a message that wants no response.

        False: this was done already, or the client's message has a `ttl` of its own.
        """
        metadata = asked.made["metadata"]
        if asked.is_sent_again or "ttl" in metadata:
            return False
        told = {key: value for key, value in metadata.items() if key != "requiresResponse"}
        asked.made["metadata"] = told | {"ttl": LONGEST_TTL_S}
        asked.is_sent_again = True
        self._open.add(told["correlationId"], asked)
        self.further.append(json.dumps(asked.made))
        return True

    def _write_message(self, frame: Json, asked: AskedFrame | None, correlation_id: str) -> Json:
        """A message for the client. An answer to the client's message has content in the form of that message."""
        metadata, content = frame.get("metadata", {}), frame.get("content", {})
        if asked is None and metadata.get("requiresResponse") is True:
            self._open.add_message(correlation_id, frame["id"])
        is_bare = BARE in metadata or (asked is not None and BARE in asked.made["metadata"])
        return {**frame, "content": content.get("content") if is_bare else content}

    def _write_agents(self, agents: list[Json], asked: AskedFrame) -> Json:
        if asked.type == "discover":
            return show_discovered(agents)
        self._seat = asked.made["from"]
        return show_registered(agents, self._seat)

    def _encode(self, frame: Json) -> str:
        """A frame as JSON, with its time as text."""
        return json.dumps(frame | {"timestamp": self._time_of(frame.get("timestamp"))})

    def _time_of(self, given_ms: object) -> str:
        """A time as text: the current time if the sender gave none, or one out of range."""
        shown = show_time(given_ms) if isinstance(given_ms, int) else None
        return shown or iso(self._now())
