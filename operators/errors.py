"""The errors that operators get: one table for REST and for `/cli`.

Nothing was sent to any agent. Codes are public and never change (docs/reference/errors.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget
from agents.core.errors import (
    Blocked,
    Busy,
    Cycle,
    Ended,
    FileGone,
    Halted,
    NotPublished,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCallerCostLimit,
    OverCap,
    OverCostLimit,
    RateLimited,
    TooDeep,
    Unavailable,
    WaitAbandoned,
)
from agents.models.choices import Failure
from agents.transcript.access import NotAllowed
from agents.transcript.mentions import TooManyFiles, Unreadable
from agents.transcript.permissions import AlreadyResolved, NoSuchRequest

RETRY_SOON_S = 2


class NoSuchSession(Exception):
    """Absent, or not visible to the operator: no difference."""


class NoSuchAgent(Exception):
    """A text begins with `@owner/slug`, and nothing of that name is there for the operator."""

    def __init__(self, handle: str) -> None:
        super().__init__(f"no agent or session @{handle}")


class Archived(Exception):
    """The session is archived: its agent brings it back by registering."""


class EmptyPrompt(Exception):
    """There is neither text nor an attachment."""


class TooManySubscriptions(Exception):
    """One socket watches as many sessions as it may."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a failure is told: on which HTTP status, under which code, in which words."""

    status: int
    code: str
    words: Callable[[Any], str]


REFUSALS: dict[type[Exception], Refusal] = {
    EmptyPrompt: Refusal(400, "validation_failed", lambda _: "text: may be empty only with attachments"),
    TooManyFiles: Refusal(400, "validation_failed", str),
    NotAllowed: Refusal(403, "forbidden", str),
    Blocked: Refusal(403, "blocked", lambda _: "the owner does not take your questions"),
    Halted: Refusal(
        403, "halted", lambda halted: "your questions are halted" if halted.is_caller else "it is halted"
    ),
    NoSuchSession: Refusal(404, "not_found", lambda _: "no such session"),
    NoSuchTarget: Refusal(404, "not_found", lambda _: "no such peer"),
    NotPublished: Refusal(404, "not_found", lambda _: "there is nothing of that name any more"),
    NoSuchAgent: Refusal(404, "agent_not_found", str),
    Unreadable: Refusal(404, "not_found", str),
    FileGone: Refusal(404, "not_found", lambda _: "a file the prompt names is not there any more"),
    NoSuchRequest: Refusal(404, "not_found", lambda _: "no such permission request"),
    Archived: Refusal(409, "conflict", lambda _: "the session is archived"),
    AmbiguousPeer: Refusal(409, "conflict", str),
    Offline: Refusal(409, "channel_offline", lambda _: "its channel is offline"),
    Busy: Refusal(409, "busy", lambda _: "it is processing a turn for another caller"),
    OverCap: Refusal(409, "concurrency", lambda over: f"it already holds {over.held} of your questions"),
    WaitAbandoned: Refusal(
        409, "gave_up", lambda _: "the question was withdrawn before the agent was free; send it again to ask"
    ),
    Ended: Refusal(409, "ended", lambda _: "the question that this one is asked for has ended"),
    TooDeep: Refusal(409, "too_deep", lambda _: "too many agents passed this question on"),
    Cycle: Refusal(409, "cycle", lambda _: "this question came through the same session already"),
    AlreadyResolved: Refusal(409, "already_resolved", str),
    TooManySubscriptions: Refusal(409, "too_many_subscriptions", lambda _: "unsubscribe from another session"),
    OverBudget: Refusal(429, "budget_exhausted", lambda over: f"its daily budget ({over.budget}) is spent"),
    OverCallerBudget: Refusal(
        429,
        "budget_exhausted",
        lambda over: f"your own daily budget at it ({over.budget}) is spent, free again at 00:00 UTC",
    ),
    OverCostLimit: Refusal(
        429, "budget_exhausted", lambda _: "it reached its cost limit of today, free again at 00:00 UTC"
    ),
    OverCallerCostLimit: Refusal(
        429,
        "budget_exhausted",
        lambda _: "your questions reached its cost limit of today for one caller, free again at 00:00 UTC",
    ),
    RateLimited: Refusal(429, "rate_limited", lambda over: f"over your rate limit, retry in {over.retry_in_s} s"),
    Unavailable: Refusal(503, "unavailable", lambda _: "the hub takes no questions right now, try again shortly"),
}
REFUSED = tuple(REFUSALS)

FAILURE_TEXT: dict[str, str] = {
    Failure.TIMEOUT: "no reply within {wait_s:g} s; a late one will be in the session's transcript",
    Failure.CHANNEL_LOST: "its channel went away before it answered",
    Failure.NOT_DELIVERED: "its channel is offline; nothing was sent",
    Failure.REPLY_TOO_LARGE: "its reply was over the size limit",
    Failure.REPLY_LOST: "part of its reply was lost",
    Failure.PROCESS_DIED: "the hub stopped before it answered",
    Failure.SHUTDOWN: "the hub stopped before it answered",
    Failure.NOT_RECORDED: "the hub could not record the answer",
    Failure.CANCELED: "canceled by its caller",
    Failure.HALTED: "halted before it answered",
    Failure.AGENT_FAILED: "the agent failed",
    Failure.REJECTED: "the agent refused the question",
    Failure.AGENT_CANCELED: "the agent canceled the question",
}
GONE_TEXT = "it was deleted before it answered"


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """A failure as it is told; `retry_in_s` when asking again later may help."""

    status: int
    code: str
    message: str
    retry_in_s: int | None = None


def describe_error(failure: Exception) -> ErrorAnswer:
    """The public words of one of `REFUSED`."""
    refusal = REFUSALS[type(failure)]
    retry_in_s = RETRY_SOON_S if refusal.status == 503 else getattr(failure, "retry_in_s", None)
    return ErrorAnswer(refusal.status, refusal.code, refusal.words(failure), retry_in_s)


def failure_text(reason: str, wait_s: float) -> str:
    """The public words of a failed turn; `wait_s` is how long its caller waited."""
    return FAILURE_TEXT.get(reason, GONE_TEXT).format(wait_s=wait_s)
