"""The names of the channels to which clients subscribe (section 8). No I/O."""

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


def is_channel(name: str) -> bool:
    """Whether clients may name the channel."""
    start, _, proposal_id = name.partition(":")
    return name in PLAIN or bool(find_inbox_agent(name)) or (start == "triad" and is_id(proposal_id))
