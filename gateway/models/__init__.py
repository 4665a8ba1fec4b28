"""The tables of the gateway. A team is the tenant: the agents of one owner."""

from gateway.models.agent_protocol import ProtocolArtifact, ProtocolStep, ProtocolTask
from gateway.models.message import HeldEntry, Letter, SessionEntry, SessionLog
from gateway.models.proposal import Proposal, Vote
from gateway.models.team import ChannelWatch, EnvelopeKey, FrameRecord, TeamAgent, TeamPolicy

__all__ = [
    "ChannelWatch",
    "EnvelopeKey",
    "FrameRecord",
    "HeldEntry",
    "Letter",
    "Proposal",
    "ProtocolArtifact",
    "ProtocolStep",
    "ProtocolTask",
    "SessionEntry",
    "SessionLog",
    "TeamAgent",
    "TeamPolicy",
    "Vote",
]
