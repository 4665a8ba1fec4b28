"""The tables of the core."""

from agents.models.agent import Agent, AgentGrant
from agents.models.alert import Alert, AlertAddress, AlertRule, Mail
from agents.models.caller import CallerBlock, CallerBudget, DailyUsage
from agents.models.directory import AgentRank, Favourite
from agents.models.failure import FailureCaller, FailureDay, FailureGroup
from agents.models.halt import Halt
from agents.models.rating import Rating
from agents.models.remote import RemoteCard, RemoteName, RemoteServer
from agents.models.session import Attachment, Connection, Process, Session, Share
from agents.models.transcript import Blob, Event, File, OpMessage, PermissionRequest, TokenUsage
from agents.models.turn import FollowUp, ProblemNote, QueuedAsk, Turn

__all__ = [
    "Agent",
    "AgentGrant",
    "AgentRank",
    "Alert",
    "AlertAddress",
    "AlertRule",
    "Attachment",
    "Blob",
    "CallerBlock",
    "CallerBudget",
    "Connection",
    "DailyUsage",
    "Event",
    "FailureCaller",
    "FailureDay",
    "FailureGroup",
    "Favourite",
    "File",
    "FollowUp",
    "Halt",
    "Mail",
    "OpMessage",
    "PermissionRequest",
    "ProblemNote",
    "Process",
    "QueuedAsk",
    "Rating",
    "RemoteCard",
    "RemoteName",
    "RemoteServer",
    "Session",
    "Share",
    "TokenUsage",
    "Turn",
]
