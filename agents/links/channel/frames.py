"""The frames of `/channel`, one JSON text message each (docs/reference/frames.md).

Unknown fields are ignored: clients are newer and older than the hub. `correlationId` ties what an agent asks of
the hub to the hub's answer.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import Meta, Struct

from agents.core.ports import RouteOrigin
from agents.links.channel.payloads import (
    DECODE_REPLY,
    Id,
    Name,
    ReplyFrame,
)
from agents.transcript.pieces import Part
from kit import strict_json
from kit.clock import iso
from kit.strict_json import BadShape, NotJson

Mode = Literal["ask", "tell"]
ChatId = Id | None


class AgentChannelFrame(Struct, frozen=True, rename="camel", tag_field="type"):
    """Any frame; its class says its `type`."""


class Register(AgentChannelFrame, frozen=True, tag="register"):
    """The first frame. `session_id`: the session to come back to; `token`: fallback for the header.

    `features`: what the agent takes beyond the first frames; names the hub does not know are ignored.
    """

    host: Name | None = None
    cwd: Name | None = None
    os_user: Name | None = None
    pid: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    channel_version: Name | None = None
    session_id: Name | None = None
    routing_name: Name | None = None
    delete_on_disconnect: bool = False
    token: Name | None = None
    features: Annotated[list[Name], Meta(max_length=100)] | None = None


class Pong(AgentChannelFrame, frozen=True, tag="pong"):
    """Answer to a ping."""

    ts: Any = None


class ChatEvent(AgentChannelFrame, frozen=True, tag="chat_event"):
    """`event_type` reply, reply_chunk, task_status or task_artifact, with the payload of that name.

    Other types are accepted.
    """

    event_type: Name
    payload: msgspec.Raw
    ts: Any = None


class TailEvent(AgentChannelFrame, frozen=True, tag="tail_event"):
    """An event of the agent's program. `Stop` ends its turn."""

    event_type: Name
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    ts: Any = None


class Welcome(AgentChannelFrame, frozen=True, tag="welcome"):
    """The connection is registered. `features`: what this hub takes beyond the first frames."""

    session_id: str
    routing_name: str
    channel_token_name: str
    features: list[str] = msgspec.field(default_factory=list)


class Ping(AgentChannelFrame, frozen=True, tag="ping"):
    """Every 25 s; any frame back shows life."""

    ts: str


class Prompt(AgentChannelFrame, frozen=True, omit_defaults=True, tag="prompt"):
    """A question to answer under its chat id. `text` holds all of it that is text.

    `task_id`, `context_id`: of the A2A task; what answers a request for input is another prompt with the same.
    `message_id`: the A2A caller's own id of the message, which may come again. `parts`: the whole message, when it
    holds more than text. `traceparent`: W3C Trace Context.
    """

    chat_id: str
    text: str
    asker_user: str
    task_id: str = ""
    context_id: str = ""
    parts: list[Part] = msgspec.field(default_factory=list)
    traceparent: str = ""
    message_id: str = ""


class Cancel(AgentChannelFrame, frozen=True, tag="cancel"):
    """The caller of that prompt canceled it. The frame is only for an agent with the feature `cancel`."""

    chat_id: str


class Bye(AgentChannelFrame, frozen=True, tag="bye"):
    """The hub is about to close; `retry` says whether to come back."""

    reason: str
    retry: bool


class Error(AgentChannelFrame, frozen=True, tag="error"):
    """auth_failed and token_revoked end the connection; every other code leaves it open."""

    code: str
    message: str


class AgentsRequest(AgentChannelFrame, frozen=True, tag="list_agents_request"):
    """Asks for the list of published agents. `q`: words, searched as in the directory."""

    correlation_id: Id
    q: Name | None = None


class PeersRequest(AgentChannelFrame, frozen=True, tag="list_peers_request"):
    """Asks for the other sessions that the agent may ask."""

    correlation_id: Id


class RouteRequest(AgentChannelFrame, frozen=True, tag="route_request"):
    """Ask another session, or a published agent, by any spelling of its name. `chatId`: the prompt it is for."""

    correlation_id: Id
    peer: Name
    prompt: str
    mode: Mode = "ask"
    chat_id: ChatId = None


class DispatchRequest(AgentChannelFrame, frozen=True, tag="dispatch_request"):
    """Ask a published agent by its handle. `chatId`: the prompt it is for."""

    correlation_id: Id
    handle: Name
    prompt: str
    mode: Mode = "ask"
    chat_id: ChatId = None


class ProbeRequest(AgentChannelFrame, frozen=True, tag="probe_request"):
    """Ask several sessions at once; `peers` null: all that are connected. `chatId`: the prompt it is for."""

    correlation_id: Id
    prompt: str
    peers: Annotated[list[Name], Meta(max_length=500)] | None = None
    chat_id: ChatId = None


class PermissionRequest(AgentChannelFrame, frozen=True, tag="permission_request"):
    """The agent's program wants leave for a tool call. `chat_id`: the prompt that it is for."""

    request_id: Id
    tool: Name = ""
    input_preview: str = ""
    ts: Any = None
    chat_id: ChatId = None


class ListedAgent(msgspec.Struct, frozen=True, rename="camel"):
    """An agent the caller may ask."""

    handle: str
    owner_login: str
    name: str
    tagline: str
    online: bool
    mine: bool
    isolated: bool


class AgentsResponse(AgentChannelFrame, frozen=True, tag="list_agents_response"):
    """The agents that `callerLogin` may ask."""

    correlation_id: str
    caller_login: str
    agents: list[ListedAgent]


class ListedPeer(msgspec.Struct, frozen=True, rename="camel"):
    """A session the caller may ask. `login`: `owner/slug`, as a route takes it; `name`: its own, `@slug`."""

    login: str
    name: str
    online: bool


class PeersResponse(AgentChannelFrame, frozen=True, tag="list_peers_response"):
    """The sessions that may be asked."""

    correlation_id: str
    peers: list[ListedPeer]


class RouteResponse(AgentChannelFrame, frozen=True, tag="route_response"):
    """The answer to a route or a dispatch; a `reply` that begins with `error: ` says why there is none."""

    correlation_id: str
    peer_login: str
    reply: str


class ProbeResponse(AgentChannelFrame, frozen=True, omit_defaults=True, tag="probe_response"):
    """One peer's answer; the last frame is `done`, without a peer."""

    correlation_id: str
    peer_login: str | None
    answer: str | None
    done: bool = False


class RouteReply(AgentChannelFrame, frozen=True, tag="route_reply"):
    """The reply to a question that the agent sent elsewhere without waiting; it wants no reply itself.

    `origin`: `operator` when an operator of the session asked, `mcp` when its agent did (mode `tell`).
    """

    route_id: str
    from_name: str
    text: str
    ts: str
    origin: RouteOrigin


class PermissionResponse(AgentChannelFrame, frozen=True, tag="permission_response"):
    """The decision on a permission request."""

    request_id: str
    decision: Literal["allow", "deny", "expired"]
    message: str | None


Request = AgentsRequest | PeersRequest | RouteRequest | DispatchRequest | ProbeRequest
FROM_AGENT: dict[str, type[AgentChannelFrame]] = {
    "register": Register,
    "pong": Pong,
    "chat_event": ChatEvent,
    "tail_event": TailEvent,
    "list_agents_request": AgentsRequest,
    "list_peers_request": PeersRequest,
    "route_request": RouteRequest,
    "dispatch_request": DispatchRequest,
    "probe_request": ProbeRequest,
    "permission_request": PermissionRequest,
}
TO_AGENT: tuple[type[AgentChannelFrame], ...] = (
    Welcome,
    Ping,
    Prompt,
    Cancel,
    AgentsResponse,
    PeersResponse,
    RouteResponse,
    ProbeResponse,
    RouteReply,
    PermissionResponse,
    Bye,
    Error,
)


class BadChannelFrame(Exception):
    """A message that is no frame; `error` is what to tell the agent, the connection stays."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code)
        self.error = Error(code=code, message=message)


MAX_LEVELS = strict_json.MAX_DEPTH + 1  # those of a payload, and the frame around it


class _Head(Struct, frozen=True):
    type: Name


_head = msgspec.json.Decoder(_Head).decode
_decode: Callable[[str], AgentChannelFrame] = msgspec.json.Decoder(Union[*FROM_AGENT.values()]).decode
encode = msgspec.json.Encoder().encode


def decode(text: str | None) -> AgentChannelFrame:
    """The frame that one message holds; None: the message is not text.

    Raises:
        BadChannelFrame: not JSON of a sound program, no `type`, an unknown type, or fields of the wrong shape.
    """
    if text is None:
        raise BadChannelFrame("bad_frame", "want JSON text")
    try:
        strict_json.read(text, max_depth=MAX_LEVELS, max_brackets=None, takes_any_text=True)
        try:
            return _decode(text)
        except msgspec.ValidationError:
            name = _head(text).type
            if name not in FROM_AGENT:
                raise BadChannelFrame("unknown_type", f"this hub has no frame {name[:60]!r}") from None
            raise
    except BadShape as bad:
        raise BadChannelFrame("bad_frame", str(bad)) from None
    except msgspec.ValidationError as wrong:
        raise BadChannelFrame("bad_frame", str(wrong)[:300]) from None
    except (NotJson, msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadChannelFrame("bad_frame", "not one JSON object") from None


def read_reply_frame(event: ChatEvent) -> ReplyFrame | None:
    """The piece or the end of a reply in a chat event, None when it is of another type.

    Raises:
        BadChannelFrame: the payload is not of that type's shape.
    """
    read = DECODE_REPLY.get(event.event_type)
    if read is None:
        return None
    try:
        return read(event.payload)
    except (msgspec.DecodeError, RecursionError, ValueError) as wrong:
        raise BadChannelFrame("bad_frame", f"payload: {wrong}"[:300]) from None


def now() -> str:
    """The time of a frame: ISO 8601, UTC."""
    return iso(datetime.now(UTC))
