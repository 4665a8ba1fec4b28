"""Frames by which an agent asks things of the hub, and the hub's answers; `correlationId` ties them together."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from agents.links.channel.frame import Frame, Id, Name
from agents.ports import RouteOrigin

Mode = Literal["ask", "tell"]
ChatId = Id | None


class AgentsRequest(Frame, frozen=True, tag="list_agents_request"):
    """Which published agents are there? `q`: part of a handle, name or tagline."""

    correlation_id: Id
    q: Name | None = None


class PeersRequest(Frame, frozen=True, tag="list_peers_request"):
    """Which other sessions may be asked?"""

    correlation_id: Id


class RouteRequest(Frame, frozen=True, tag="route_request"):
    """Ask another session, or a published agent, by any spelling of its name. `chatId`: the prompt it is for."""

    correlation_id: Id
    peer: Name
    prompt: str
    mode: Mode = "ask"
    chat_id: ChatId = None


class DispatchRequest(Frame, frozen=True, tag="dispatch_request"):
    """Ask a published agent by its handle. `chatId`: the prompt it is for."""

    correlation_id: Id
    handle: Name
    prompt: str
    mode: Mode = "ask"
    chat_id: ChatId = None


class ProbeRequest(Frame, frozen=True, tag="probe_request"):
    """Ask several sessions at once; `peers` null: all that are connected. `chatId`: the prompt it is for."""

    correlation_id: Id
    prompt: str
    peers: Annotated[list[Name], Meta(max_length=500)] | None = None
    chat_id: ChatId = None


class PermissionRequest(Frame, frozen=True, tag="permission_request"):
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


class AgentsResponse(Frame, frozen=True, tag="list_agents_response"):
    """The agents that `callerLogin` may ask."""

    correlation_id: str
    caller_login: str
    agents: list[ListedAgent]


class ListedPeer(msgspec.Struct, frozen=True, rename="camel"):
    """A session the caller may ask. `login`: `owner/slug`, as a route takes it; `name`: its own, `@slug`."""

    login: str
    name: str
    online: bool


class PeersResponse(Frame, frozen=True, tag="list_peers_response"):
    """The sessions that may be asked."""

    correlation_id: str
    peers: list[ListedPeer]


class RouteResponse(Frame, frozen=True, tag="route_response"):
    """The answer to a route or a dispatch; a `reply` that begins with `error: ` says why there is none."""

    correlation_id: str
    peer_login: str
    reply: str


class ProbeResponse(Frame, frozen=True, omit_defaults=True, tag="probe_response"):
    """One peer's answer; the last frame is `done`, without a peer."""

    correlation_id: str
    peer_login: str | None
    answer: str | None
    done: bool = False


class RouteReply(Frame, frozen=True, tag="route_reply"):
    """What came back on a question that was sent elsewhere without waiting; there is nothing to reply to.

    `origin`: `operator` when an operator of the session asked, `mcp` when its agent did (mode `tell`).
    """

    route_id: str
    from_name: str
    text: str
    ts: str
    origin: RouteOrigin


class PermissionResponse(Frame, frozen=True, tag="permission_response"):
    """What became of a permission request."""

    request_id: str
    decision: Literal["allow", "deny", "expired"]
    message: str | None


Request = AgentsRequest | PeersRequest | RouteRequest | DispatchRequest | ProbeRequest
FROM_AGENT: tuple[type[Frame], ...] = (
    AgentsRequest,
    PeersRequest,
    RouteRequest,
    DispatchRequest,
    ProbeRequest,
    PermissionRequest,
)
TO_AGENT: tuple[type[Frame], ...] = (
    AgentsResponse,
    PeersResponse,
    RouteResponse,
    ProbeResponse,
    RouteReply,
    PermissionResponse,
)
