"""Why asks ended as they did, in the words of who owns the agent."""

from agents.core.errors import (
    Blocked,
    Busy,
    Cycle,
    Denied,
    Ended,
    GaveUp,
    Halted,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCap,
    RateLimited,
    TooDeep,
)
from agents.models.choices import Failure, Interruption

DENIED: dict[type[Denied], str] = {
    Offline: "it was offline",
    Busy: "it answered somebody else",
    OverCap: "the asker held as many questions as one may",
    OverBudget: "the day’s budget was spent",
    OverCallerBudget: "the asker’s own budget of the day was spent",
    Blocked: "the asker is blocked",
    Halted: "it or the asker was halted",
    GaveUp: "its asker left before it was free",
    Ended: "it was asked in a turn that had ended",
    TooDeep: "too many agents passed it on",
    Cycle: "it came through the same agent already",
    RateLimited: "the asker asked too fast",
}
WORDS: dict[str, str] = {
    **{denied.reason: words for denied, words in DENIED.items()},
    Failure.TIMEOUT: "no answer in time",
    Failure.CHANNEL_LOST: "its connection was lost",
    Failure.NOT_DELIVERED: "it never got the question",
    Failure.REPLY_TOO_LARGE: "its answer was too large",
    Failure.REPLY_LOST: "part of its answer was lost",
    Failure.PROCESS_DIED: "the hub stopped unexpectedly",
    Failure.SHUTDOWN: "the hub was shut down",
    Failure.NOT_RECORDED: "the answer could not be recorded",
    Failure.CANCELED: "its asker canceled it",
    Failure.HALTED: "it or the asker was halted meanwhile",
    Failure.AGENT_FAILED: "the agent said that it failed",
    Failure.REJECTED: "the agent declined to answer",
    Interruption.INPUT_REQUIRED: "asked back",
    Interruption.AUTH_REQUIRED: "asked for leave or credentials",
}


def in_words(reason: str) -> str:
    """A reason as stored, said plainly; one that is not known here as it is."""
    return WORDS.get(reason, reason.replace("_", " "))
