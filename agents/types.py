"""What passes between surfaces, admission, dispatch and links: frozen, plain, no JSON."""

from dataclasses import dataclass
from enum import StrEnum

from accounts.authn import Identity


class Outcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"


class Failure(StrEnum):
    """Why an admitted turn failed; public, stored, never renamed."""

    TIMEOUT = "timeout"
    CHANNEL_LOST = "channel_lost"
    NOT_DELIVERED = "not_delivered"
    REPLY_TOO_LARGE = "reply_too_large"
    REPLY_LOST = "reply_lost"
    PROCESS_DIED = "process_died"
    SHUTDOWN = "shutdown"
    NOT_RECORDED = "not_recorded"


@dataclass(frozen=True, slots=True)
class AgentRef:
    """A published agent, as the lookup before admission found it."""

    agent_id: int
    session_id: int
    handle: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a request's token and path stand for; None where there is nothing live."""

    identity: Identity | None
    agent: AgentRef | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to one agent, before anything was decided. `wait_s`: how long its caller waits."""

    chat_id: str
    agent: AgentRef
    caller_id: int
    caller_login: str
    surface: str
    question: str
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """An admitted ask: durable, counted, holding its claim; to be delivered over `connection_id`."""

    ask: Ask
    connection_id: int
    link_process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How dispatch wants a turn to end; the ledger's row says how it did."""

    outcome: Outcome
    reason: str = ""
    text: str = ""
    latency_ms: int | None = None
    keeps_claim: bool = False
    gives_back: bool = False


@dataclass(frozen=True, slots=True)
class SettledTurn:
    """The one end of a turn, as stored. `text` is the reply; empty unless it completed."""

    outcome: Outcome
    reason: str
    text: str = ""
