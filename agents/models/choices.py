"""The values of columns that say how a turn was asked and how it ended. Stored: never renamed."""

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a turn."""

    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"


class Surface(StrEnum):
    """The surface over which a turn was asked; stored, never renamed."""

    A2A = "a2a"
    PROMPT = "prompt"
    CLI = "cli"
    ROUTE = "route"
    PROBE = "probe"
    DISPATCH = "dispatch"
    MCP = "mcp"
    CHAT = "chat"
    GATEWAY = "gateway"
    AGNT = "agnt"
    EVALUATION = "evaluation"


class TurnFailure(StrEnum):
    """The reason why an admitted turn failed; public, stored, never renamed."""

    TIMEOUT = "timeout"
    CHANNEL_LOST = "channel_lost"
    NOT_DELIVERED = "not_delivered"
    REPLY_TOO_LARGE = "reply_too_large"
    REPLY_LOST = "reply_lost"
    PROCESS_DIED = "process_died"
    SHUTDOWN = "shutdown"
    NOT_RECORDED = "not_recorded"
    CANCELED = "canceled"
    HALTED = "halted_meanwhile"
    ACCESS_ENDED = "access_ended"
    AGENT_FAILED = "agent_failed"
    REJECTED = "rejected"
    AGENT_CANCELED = "agent_canceled"


class Interruption(StrEnum):
    """The reason why a completed turn is not the end of its task: the reply asks for something.

    Stored as its reason.
    """

    INPUT_REQUIRED = "input_required"
    AUTH_REQUIRED = "auth_required"


CHANNEL_LINK = "channel"  # `Session.link` of agents that connect to `/channel`

NO_CONNECTION = 0  # of a turn whose link needs no connection; ids of connections begin with 1

# the text of such a failure is the agent's
AGENTS_OWN_WORDS = frozenset({TurnFailure.AGENT_FAILED, TurnFailure.REJECTED, TurnFailure.AGENT_CANCELED})

# The reasons of failures and refusals that an owner can act upon: turns with these are grouped. The index of turns
# that are not in a group yet names them, so a change needs a migration; a test compares them with the registry.
GROUPED_REASONS = (
    TurnFailure.AGENT_FAILED.value,
    "budget_exhausted",
    "busy",
    "caller_budget_spent",
    "caller_cost_reached",
    TurnFailure.CHANNEL_LOST.value,
    "concurrency",
    "cost_limit_reached",
    "group_budget_spent",
    TurnFailure.NOT_DELIVERED.value,
    TurnFailure.NOT_RECORDED.value,
    "offline",
    TurnFailure.PROCESS_DIED.value,
    TurnFailure.REPLY_LOST.value,
    TurnFailure.REPLY_TOO_LARGE.value,
    TurnFailure.SHUTDOWN.value,
    TurnFailure.TIMEOUT.value,
)
