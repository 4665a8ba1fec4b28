"""The rights of the roles of a team (docs/adr/0139).

A role is that of a token in the team of its user. Agents of other users are open to a client by their shares.
"""

from enum import StrEnum, auto

from accounts.authn import AGENT_KINDS, CALLER_KINDS, RESERVED_SEATS, Identity, TokenScope
from gateway.wire.channels import STATUS, find_inbox_agent, is_channel
from gateway.wire.errors import FrameRefused, forbidden
from gateway.wire.frames import Envelope, Json


class TeamRole(StrEnum):
    """The roles of a team; the value is the name on the wire."""

    ADMIN = auto()
    OPERATOR = auto()
    AGENT = auto()
    OBSERVER = auto()


class Action(StrEnum):
    """The actions of frames. An agent does those of OF_ITSELF for itself alone."""

    SEND = auto()
    BROADCAST = auto()
    FIND = auto()
    READ_AGENT = auto()
    WRITE_AGENT = auto()
    MANAGE_AGENT = auto()
    PROPOSE = auto()
    VOTE = auto()


ADMIN, OPERATOR, AGENT, OBSERVER = TeamRole
MAY: dict[Action, frozenset[TeamRole]] = {
    Action.SEND: frozenset({ADMIN, OPERATOR, AGENT}),
    Action.BROADCAST: frozenset({ADMIN, OPERATOR, AGENT}),
    Action.FIND: frozenset(TeamRole),
    Action.READ_AGENT: frozenset({ADMIN, OPERATOR, AGENT}),
    Action.WRITE_AGENT: frozenset({ADMIN, AGENT}),
    Action.MANAGE_AGENT: frozenset({ADMIN, OPERATOR, AGENT}),
    Action.PROPOSE: frozenset({ADMIN, OPERATOR, AGENT}),
    Action.VOTE: frozenset({AGENT}),
}
OF_ITSELF = frozenset({Action.READ_AGENT, Action.WRITE_AGENT, Action.MANAGE_AGENT})
TAKES_SCOPE = {
    Action.SEND: TokenScope.ASK,
    Action.BROADCAST: TokenScope.ASK,
    Action.READ_AGENT: TokenScope.READ,
    Action.WRITE_AGENT: TokenScope.PUBLISH,
    Action.MANAGE_AGENT: TokenScope.PUBLISH,
    Action.PROPOSE: TokenScope.ASK,
}
OF_FRAMES = {
    "message": Action.SEND,
    "response": Action.SEND,
    "event": Action.SEND,
    "status": Action.FIND,
    "discovery": Action.FIND,
    "subscribe": Action.FIND,
    "unsubscribe": Action.FIND,
    "workspace": Action.FIND,
    "broadcast": Action.BROADCAST,
    "proposal": Action.PROPOSE,
    "vote": Action.VOTE,
}


def find_role(identity: Identity) -> TeamRole | None:
    """The role of a token in its user's team; None for a token that cannot sign in to the gateway."""
    if identity.kind == "session":
        return TeamRole.ADMIN
    if identity.kind not in (*CALLER_KINDS, *AGENT_KINDS):
        return None
    if identity.kind in AGENT_KINDS or TokenScope.CONNECT in identity.scopes.split():
        return TeamRole.AGENT
    if identity.may(TokenScope.ASK, agent=identity.only_agent):
        return TeamRole.OPERATOR
    return TeamRole.OBSERVER if identity.may(TokenScope.READ, agent=identity.only_agent) else None


def is_permitted(identity: Identity, action: Action) -> bool:
    """True if a token may do something in its user's team, be it for itself alone."""
    role = find_role(identity)
    if role not in MAY[action]:
        return False
    if role in (TeamRole.ADMIN, TeamRole.AGENT):
        return True
    if identity.only_agent:  # the token may message that agent and nothing else
        return action is Action.SEND
    return action not in TAKES_SCOPE or identity.may(TAKES_SCOPE[action])


def check_frame(identity: Identity, seat: str, envelope: Envelope) -> None:
    """Check what a frame does, but for a request: see `check_service`. `seat`: of the client, empty without one.

    Raises:
        FrameRefused: 5004, whether or not what the frame names is there.
    """
    match envelope.type:
        case "subscribe":
            check_subscription(identity, seat, envelope.content["channel"])
        case "status" if envelope.content:
            check_action(identity, Action.SEND, own=seat, agent=seat)
        case name if name in OF_FRAMES:
            check_action(identity, OF_FRAMES[name], own=seat, agent=seat)


def check_subscription(identity: Identity, seat: str, channel: str) -> None:
    """Check that a client may be pushed the frames of a channel.

    Raises:
        FrameRefused: 5004.
    """
    action = Action.FIND if channel == STATUS else Action.READ_AGENT
    check_action(identity, action, own=seat, agent=find_inbox_agent(channel) or seat)


def may_subscribe(identity: Identity, seat: str, channel: str) -> bool:
    """True if a client may stay subscribed. Channels that the hub made for it are its own."""
    if not is_channel(channel):
        return True
    try:
        check_subscription(identity, seat, channel)
    except FrameRefused:
        return False
    return True


def check_service(identity: Identity, seat: str, action: Action, params: Json) -> None:
    """Check the request of a service. Its parameter `agent` names the agent that it is about, else it is the own.

    Raises:
        FrameRefused: 5004, whether or not what the request names is there.
    """
    agent = params.get("agent", seat)
    check_action(identity, action, own=seat, agent=agent if isinstance(agent, str) else seat)


def check_action(identity: Identity, action: Action, *, own: str, agent: str) -> None:
    """Check one action. `agent`: whom it is done to; `own`: the client's seat.

    Raises:
        FrameRefused: 5004.
    """
    if not is_permitted(identity, action):
        text, reason = "your role, or your token, is not for this", "role"
        if action is Action.VOTE:
            text, reason = "only members of the triad vote", "not_triad_member"
        raise forbidden(text, reason=reason)
    if action in OF_ITSELF and agent != own and find_role(identity) is TeamRole.AGENT:
        raise forbidden("an agent does this for itself alone", reason="role")


def find_only_agent(identity: Identity) -> str:
    """The handle of the one agent that a token messages; empty: it is not limited to one."""
    return "" if TokenScope.CONNECT in identity.scopes.split() else identity.only_agent


def find_seat(identity: Identity) -> str:
    """The name of the one seat that a token takes; empty: it is not limited to one."""
    is_for_seat = TokenScope.CONNECT in identity.scopes.split()
    return identity.only_agent.rpartition("/")[2] if is_for_seat else ""


def may_take_seat(identity: Identity, name: str) -> bool:
    """True if a token may take the seat of that name in its user's team."""
    if name in RESERVED_SEATS:
        return False
    if TokenScope.CONNECT in identity.scopes.split():
        return identity.only_agent == f"{identity.login}/{name}".lower()
    return identity.kind in AGENT_KINDS
