"""Looks up what agents' requests name, and words their refusals, as sentences for the agent's model.

An agent asks with the access of the user on whose behalf it asks.

The wire has no field for the failure of a request: a failed ask has a reply that begins with `error: `, a failed
list is empty and followed by an error frame. Every tool call gets an answer.
"""

from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget, find_agent, get_peer, load_peers
from agents.core.errors import Denied, FileGone, NotPublished, Unavailable
from agents.core.failures import find_failure
from agents.core.types import AskTarget
from agents.links.channel.frames import (
    AgentChannelFrame,
    AgentsRequest,
    AgentsResponse,
    DispatchRequest,
    Error,
    ListedAgent,
    ListedPeer,
    PeersRequest,
    PeersResponse,
    ProbeRequest,
    ProbeResponse,
    Request,
    RouteRequest,
    RouteResponse,
)
from agents.models import Agent
from agents.models.session import online_sessions
from agents.transcript.access import NotAllowed, SessionRole

MAX_LISTED = 500


def askable_agents(user_id: int, words: str) -> list[ListedAgent]:
    """Published agents that a user may ask, by handle; with `words` the agents that match, the best first."""
    if not words.isprintable():
        return []
    found = Agent.objects.askable_by(user_id).select_related("owner").matching(words)
    agents: list[Agent] = list(found[:MAX_LISTED])
    online = online_sessions({agent.session_id for agent in agents})
    return [
        ListedAgent(
            handle=agent.handle,
            owner_login=agent.owner.login,
            name=agent.name,
            tagline=agent.tagline,
            online=agent.session_id in online,
            mine=agent.owner_id == user_id,
            isolated=agent.isolated,
        )
        for agent in agents
    ]


def askable_peers(user_id: int, own_session_id: int) -> list[ListedPeer]:
    """Sessions that a user may prompt, without the session of the asking agent."""
    peers = load_peers(user_id, at_least=SessionRole.PROMPTER)
    others = [peer for peer in peers if peer.session.pk != own_session_id]
    return [ListedPeer(peer.name, f"@{peer.session.routing_name}", peer.is_online) for peer in others]


def find_routed(name: str, user_id: int) -> AskTarget:
    """A session that the user may prompt, else a published agent of that handle.

    Raises:
        NoSuchTarget: there is neither.
        NotAllowed: a session that the user may only look at, and no such agent.
        AmbiguousPeer: several connected sessions.
    """
    try:
        return get_peer(name, user_id).target
    except (NoSuchTarget, NotAllowed):
        agent = find_agent(name, user_id)
        if agent is None:
            raise
        return agent


def get_agent(handle: str, user_id: int) -> AskTarget:
    """The published agent of a handle.

    Raises:
        NoSuchTarget: none that this user may ask.
    """
    agent = find_agent(handle, user_id)
    if agent is None:
        raise NoSuchTarget
    return agent


ISOLATED = "this agent is isolated: it answers from its own context and reaches no other session meanwhile"
TOO_MANY = "too many requests of this agent are open, wait for one of them"
FILE_GONE = "a file that the prompt names is not there for the caller"
NOT_THERE = "there is no @{name} that may be asked"
NOT_ALLOWED = "asking @{name} takes the role {role} of that session"


def refusal_text(refusal: Exception, name: str) -> str:
    """The text of a refusal before asking; `name` without @."""
    match refusal:
        case Denied():
            return refusal.text_for_agents(name)
        case AmbiguousPeer():
            return str(refusal)
        case NotAllowed():
            return NOT_ALLOWED.format(name=name, role=refusal.needed.word)
        case NoSuchTarget() | NotPublished():
            return NOT_THERE.format(name=name)
        case FileGone():
            return FILE_GONE
    return Unavailable.text


def failure_text(reason: str, name: str, own_words: str = "") -> str:
    """A failed turn in words; `name` without @. `own_words`: the reason that the agent gave, if any."""
    text = find_failure(reason).agent.format(agent=f"@{name}")
    return f"{text}: {own_words}" if own_words else text


def as_reply(sentence: str) -> str:
    """A sentence where a reply is expected."""
    return f"error: {sentence}"


def refuse(request: Request, code: str, sentence: str, *, login: str) -> list[AgentChannelFrame]:
    """The frames that end a failed request; `login`: the user on whose behalf the agent asked."""
    correlation_id, error = request.correlation_id, Error(code=code, message=sentence)
    match request:
        case RouteRequest() | DispatchRequest():
            return [RouteResponse(correlation_id, named_in(request), as_reply(sentence))]
        case ProbeRequest():
            return [ProbeResponse(correlation_id, None, None, done=True), error]
        case PeersRequest():
            return [PeersResponse(correlation_id, []), error]
        case AgentsRequest():
            return [AgentsResponse(correlation_id, login, []), error]


def named_in(request: RouteRequest | DispatchRequest) -> str:
    """The agent or session that a request names, without @."""
    return (request.peer if isinstance(request, RouteRequest) else request.handle).removeprefix("@")
