"""The names of the channels of a team."""

from gateway.wire.frame_types import AGENT_NAME, is_id

STATUS = "agent:status"
GENERAL = "agent:a2a"
MESSAGES = "agent:message"
ACTIVITY = "agent:activity"
PLAIN = frozenset({STATUS, GENERAL, MESSAGES, ACTIVITY})


def inbox_channel(agent: str) -> str:
    """The channel of what one agent is sent."""
    return f"agent:{agent}:inbox"


def find_inbox_agent(channel: str) -> str:
    """The agent whose inbox a channel is; empty for other channels."""
    start, _, rest = channel.partition(":")
    name, _, end = rest.partition(":")
    return name if (start, end) == ("agent", "inbox") and AGENT_NAME.fullmatch(name) else ""


def proposal_channel(proposal_id: str) -> str:
    """The channel of the votes and the decision on a proposal."""
    return f"triad:{proposal_id}"


def find_proposal_id(channel: str) -> str:
    """The proposal whose channel it is; empty for other channels."""
    start, _, proposal_id = channel.partition(":")
    return proposal_id if start == "triad" and is_id(proposal_id) else ""


def is_channel(name: str) -> bool:
    """True if clients may name the channel."""
    return name in PLAIN or bool(find_inbox_agent(name)) or bool(find_proposal_id(name))
