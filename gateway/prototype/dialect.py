"""The dialect of the protocol's prototype, translated at the edge of a socket: `hub.asgi` asks for it.

A client speaks it that connects to `/a2a` without a subprotocol, where the setting GATEWAY_PROTOTYPE is on. Frames
that both dialects have pass as they are.
"""

import json
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from gateway.wire.envelope import MAX_FRAME_BYTES, Json
from gateway.wire.protocol import VERSION
from kit import strict_json
from kit.asgi import Message, Receive, Scope, Send, headers_of
from kit.clock import iso
from kit.ids import unguessable

PATH = "/a2a"
AGENT_HEADER = "x-agent-id"
PREFIX = "prototype-"  # of the correlation ids of frames that have none of their own
KEPT = ("id", "from", "agent", "timestamp", "metadata")  # of a message, besides its content
MOST_OPEN = 200
OFFLINE = "offline"


class PrototypeDialect:
    """The frames of one socket, in both directions. `now`: the time that is written into frames."""

    def __init__(self, now: Callable[[], datetime], port: int) -> None:
        self._now = now
        self._port = port
        # What the client asked: types and frames by correlation id. What it is asked: correlation ids.
        self._open: OrderedDict[str, tuple[str, Json]] = OrderedDict()
        self._asked: deque[str] = deque(maxlen=MOST_OPEN)

    def welcome(self) -> str:
        """The first frame of the gateway."""
        gateway = {"version": VERSION, "port": self._port}
        return self._encode({"type": "welcome", "clientId": unguessable("gw-"), "gateway": gateway})

    def read(self, text: str) -> str:
        """A message of the client in `a2a-v1`; what cannot be read is left as it is, and refused as such."""
        if len(text) > MAX_FRAME_BYTES:
            return text
        try:
            frame = strict_json.parse(text, max_brackets=None)
        except strict_json.UnreadableText:
            return text
        translate = _READERS.get(frame.get("type")) if _is_frame(frame) else None
        if translate is None:
            return text
        made = translate(frame)
        metadata = made["metadata"] = dict(frame.get("metadata", {}))
        given = frame.get("correlationId", metadata.get("correlationId"))
        if given is not None:
            metadata["correlationId"] = given
        if isinstance(given, str) and given in self._asked:  # it is the answer
            self._asked.remove(given)
        elif frame["type"] in _ASKS or (frame["type"] == "message" and given is not None):
            metadata.setdefault("correlationId", unguessable(PREFIX))
            if frame["type"] == "message":
                metadata.setdefault("requiresResponse", True)
            self._note(metadata["correlationId"], frame)
        return json.dumps(made)

    def write(self, text: str) -> str | None:
        """A frame of the gateway in the dialect; None: the dialect has none for it."""
        frame = json.loads(text)
        correlation_id = frame.get("metadata", {}).get("correlationId", "")
        kind, asked = self._open.get(correlation_id, ("", {}))
        about = {} if correlation_id.startswith(PREFIX) else {"correlationId": correlation_id}
        about = {key: value for key, value in about.items() if value}
        content = frame.get("content", {})
        if kind and frame["type"] != "event":  # events tell how far it is
            del self._open[correlation_id]
        match frame["type"], kind:
            case "auth-response", _ if content.get("status") == "authenticated":
                return None
            case "error", _:
                shown = {"error": content.get("message"), "code": content.get("code")}
                return self._encode({"type": "error", **shown, **about})
            case "discovery", "register" | "discover":
                return self._encode(_show_agents(content["agents"], kind, asked) | about)
            case "pong", "health":
                return self._encode({"type": "health", "status": "ok", **about})
            case "response", "broadcast":
                return self._encode({"type": "broadcast-result", **content.get("result", content), **about})
            case "message", _:
                self._note_asked(frame, correlation_id)
                shown = {key: frame[key] for key in KEPT if key in frame}
                shown |= {"type": "response" if kind else "message", "content": content.get("content")}
                return self._encode({**shown, "role": content.get("role"), **about})
            case "response", _:
                return self._encode({**frame, "content": content.get("result", content), **about})
        return self._encode(frame | about)

    def _note(self, correlation_id: object, frame: Json) -> None:
        """Remember what is asked, the latest MOST_OPEN, for the form of its answer."""
        if isinstance(correlation_id, str):
            self._open[correlation_id] = (frame["type"], frame)
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)

    def _note_asked(self, frame: Json, correlation_id: str) -> None:
        """Remember what the client is asked: a message with that id is the answer."""
        if frame.get("metadata", {}).get("requiresResponse") is True:
            self._asked.append(correlation_id)

    def _encode(self, frame: Json) -> str:
        """A frame with its time as text."""
        given_ms = frame.get("timestamp")
        try:
            moment = datetime.fromtimestamp(given_ms / 1000, UTC) if isinstance(given_ms, int) else self._now()
        except (OverflowError, OSError, ValueError):  # its sender named a time that no calendar has
            moment = self._now()
        return json.dumps(frame | {"timestamp": iso(moment)})


def speaks_prototype(scope: Scope) -> bool:
    """Whether the client of an upgrade speaks the dialect."""
    return scope["path"] == PATH and not scope["subprotocols"]


def translated(scope: Scope, receive: Receive, send: Send) -> tuple[Scope, Receive, Send]:
    """A socket of the dialect, as the consumer of `a2a-v1` takes it."""
    port = (scope.get("server") or ("", 0))[1]
    dialect = PrototypeDialect(lambda: datetime.now(UTC), port or 0)

    async def read() -> Message:
        message = await receive()
        text = message.get("text") if message["type"] == "websocket.receive" else None
        return message if text is None else {**message, "text": dialect.read(text)}

    async def write(message: Mapping[str, Any]) -> None:
        if message["type"] != "websocket.send":
            await send(message)
            if message["type"] == "websocket.accept":
                await send({"type": "websocket.send", "text": dialect.welcome()})
        elif (text := dialect.write(message["text"])) is not None:
            await send({**message, "text": text})

    named, query = headers_of(scope).get(AGENT_HEADER, ""), scope.get("query_string", b"")
    if named and b"agentId=" not in query:
        query = b"&".join(filter(None, [query, b"agentId=" + quote(named, safe="").encode()]))
    scope["query_string"] = b""  # the socket stays for long, and so would a token in it
    return {**scope, "query_string": query}, read, write


def _is_frame(value: object) -> bool:
    """Whether it is an object with a type; what else is wrong in it is found when it is translated."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and isinstance(value.get("metadata", {}), dict)
    )


def _read_register(frame: Json) -> Json:
    """A list of agents: its `from` takes the seat."""
    return {"type": "discovery", "content": {"action": "list"}, "from": frame.get("agentId")}


def _read_discover(frame: Json) -> Json:
    return {"type": "discovery", "content": {"action": "list"}}


def _read_health(frame: Json) -> Json:
    return {"type": "ping"}


def _read_message(frame: Json) -> Json:
    content = frame.get("content", frame.get("message"))
    is_whole = isinstance(content, dict) and isinstance(content.get("role"), str) and "content" in content
    made = {key: value for key, value in frame.items() if key not in ("to", "message", "correlationId")}
    made["content"] = content if is_whole else {"role": "user", "content": content}
    if "agent" not in made and "to" in frame:
        made["agent"] = frame["to"]
    return made


def _read_response(frame: Json) -> Json:
    content = frame.get("content", frame.get("response"))
    is_whole = isinstance(content, dict) and ("result" in content or "error" in content)
    made = {key: value for key, value in frame.items() if key not in ("response", "correlationId")}
    return made | {"content": content if is_whole else {"result": content}}


def _read_broadcast(frame: Json) -> Json:
    content = frame.get("content", frame.get("message"))
    is_whole = isinstance(content, dict) and "message" in content
    made = {key: value for key, value in frame.items() if key not in ("message", "correlationId")}
    return made | {"content": content if is_whole else {"message": content}}


def _read_vote(frame: Json) -> Json:
    content = {key: frame[key] for key in ("proposalId", "vote", "reasoning", "confidence") if key in frame}
    voter = {"from": frame["voter"]} if "voter" in frame else {}
    return {"type": "vote", "content": content, **voter}


def _show_agents(agents: list[Json], kind: str, asked: Json) -> Json:
    connected = [one["name"] for one in agents if one["status"] != OFFLINE]
    if kind == "register":
        return {"type": "registered", "agentId": asked.get("agentId"), "connectedAgents": connected}
    names = [one["name"] for one in agents]
    return {"type": "discover", "connectedAgents": connected, "registeredAgents": names}


_READERS: Mapping[Any, Callable[[Json], Json]] = {
    "register": _read_register,
    "discover": _read_discover,
    "health": _read_health,
    "message": _read_message,
    "response": _read_response,
    "broadcast": _read_broadcast,
    "vote_submission": _read_vote,
}
_ASKS = frozenset({"register", "discover", "health", "broadcast", "vote_submission"})
