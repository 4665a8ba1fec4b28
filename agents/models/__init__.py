"""The nouns of the core, one module each."""

from agents.models.agent import Agent, AgentGrant, CallerBlock, CallerBudget, DailyUsage
from agents.models.file import Blob, File
from agents.models.halt import Halt
from agents.models.permission import PermissionRequest
from agents.models.presence import Attachment, Connection, Process
from agents.models.queued_ask import QueuedAsk
from agents.models.remote import RemoteCard, RemoteName, RemoteServer
from agents.models.session import Session
from agents.models.share import Share
from agents.models.transcript import Event, OpMessage, TokenUsage
from agents.models.turn import Turn

__all__ = [
    "Agent",
    "AgentGrant",
    "Attachment",
    "Blob",
    "CallerBlock",
    "CallerBudget",
    "Connection",
    "DailyUsage",
    "Event",
    "File",
    "Halt",
    "OpMessage",
    "PermissionRequest",
    "Process",
    "QueuedAsk",
    "RemoteCard",
    "RemoteName",
    "RemoteServer",
    "Session",
    "Share",
    "TokenUsage",
    "Turn",
]
