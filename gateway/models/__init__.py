"""The tables of the gateway. A team is the tenant: the agents of one owner."""

from gateway.models.messages import (
    HeldEntry,
    Letter,
    ProtocolArtifact,
    ProtocolStep,
    ProtocolTask,
    SessionEntry,
    SessionLog,
)
from gateway.models.team import ChannelWatch, EnvelopeKey, FrameRecord, Proposal, TeamAgent, TeamPolicy, Vote

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
