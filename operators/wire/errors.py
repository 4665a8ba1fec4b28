"""The errors that operators get: one table for REST and for `/cli`.

The hub sent nothing to any agent. Codes are public and never change (docs/reference/errors.md).
"""

from collections.abc import Mapping

from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget
from agents.core.errors import (
    Blocked,
    Busy,
    Cycle,
    Denied,
    FileGone,
    NotPublished,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCallerCostLimit,
    OverCap,
    OverGroupBudget,
    RateLimited,
    Unavailable,
)
from agents.core.failures import REMOVED, find_failure
from agents.core.reasons import RefusalKind
from agents.models.choices import TurnFailure
from agents.transcript.access import NotAllowed
from agents.transcript.mentions import FilesUnreadable, TooManyFiles
from agents.transcript.permissions import AlreadyResolved, NoSuchRequest
from kit.asgi import RETRY_SOON, RequestRefused, retry_after


class NoSuchSession(Exception):
    """The session is absent or hidden from the operator; the error does not say which."""


class NoSuchRecipient(Exception):
    """A text begins with `@owner/slug`, and the operator can ask no session or agent of that name."""

    def __init__(self, handle: str) -> None:
        super().__init__(f"no agent or session @{handle}")


class Archived(Exception):
    """The session is archived: its agent brings it back by registering."""


class EmptyPrompt(Exception):
    """The prompt has neither text nor an attachment."""


class TooManySubscriptions(Exception):
    """The socket already watches as many sessions as one socket may."""


# Status, code and text of errors that are no refusals of admission. Text empty: the exception's text is public.
OTHER_ERRORS: Mapping[type[Exception], tuple[int, str, str]] = {
    EmptyPrompt: (400, "validation_failed", "text: may be empty only with attachments"),
    TooManyFiles: (400, "validation_failed", ""),
    NotAllowed: (403, "forbidden", ""),
    NoSuchSession: (404, "not_found", "no such session"),
    NoSuchTarget: (404, "not_found", "no such peer"),
    NotPublished: (404, "not_found", "there is nothing of that name any more"),
    NoSuchRecipient: (404, "agent_not_found", ""),
    FilesUnreadable: (404, "not_found", ""),
    FileGone: (404, "not_found", "a file the prompt names is not there any more"),
    NoSuchRequest: (404, "not_found", "no such permission request"),
    Archived: (409, "conflict", "the session is archived"),
    AmbiguousPeer: (409, "conflict", ""),
    AlreadyResolved: (409, "already_resolved", ""),
    TooManySubscriptions: (409, "too_many_subscriptions", "unsubscribe from another session"),
    Unavailable: (503, "unavailable", Unavailable.text),
}
REFUSED: tuple[type[Exception], ...] = (Denied, *OTHER_ERRORS)
STATUSES = {RefusalKind.FORBIDDEN: 403, RefusalKind.SPENT: 429, RefusalKind.TOO_FAST: 429}
CODES = {RefusalKind.OFFLINE: "channel_offline", RefusalKind.SPENT: "budget_exhausted"}
CONFLICT = 409  # the status of other refusals
OWN_TEXTS: Mapping[type[Denied], str] = {
    Offline: "its channel is offline",
    Busy: "it is processing a turn for another caller",
    OverCap: "it already holds {denied.held} of your questions",
    OverBudget: "its daily budget ({denied.budget}) is spent",
    OverCallerBudget: "your own daily budget at it ({denied.budget}) is spent, free again at 00:00 UTC",
    OverGroupBudget: "the daily budget of your group at it ({denied.budget}) is spent, free again at 00:00 UTC",
    OverCallerCostLimit: (
        "your questions reached its cost limit of today for one caller, free again at 00:00 UTC"
    ),
    Blocked: "the owner does not take your questions",
    Cycle: "this question came through the same session already",
}
OWN_FAILURE_TEXTS: Mapping[str, str] = {
    TurnFailure.TIMEOUT: "no reply within {wait_s:g} s; a late one will be in the session's transcript",
    TurnFailure.CHANNEL_LOST: "its channel went away before it answered",
    TurnFailure.NOT_DELIVERED: "its channel is offline; nothing was sent",
    TurnFailure.REPLY_TOO_LARGE: "its reply was over the size limit",
    TurnFailure.REPLY_LOST: "part of its reply was lost",
    REMOVED: "it was deleted before it answered",
}


def describe_error(failure: Exception) -> RequestRefused:
    """The status, code and text of one of `REFUSED`."""
    if isinstance(failure, Denied):
        own = OWN_TEXTS.get(type(failure))
        text = failure.fill(own, "it") if own else failure.text("it")
        retry = [retry_after(failure.retry_in_s)] if isinstance(failure, RateLimited) else []
        return RequestRefused(*status_and_code(failure), text, *retry)
    status, code, text = OTHER_ERRORS[type(failure)]
    return RequestRefused(status, code, text or str(failure), *([RETRY_SOON] if status == 503 else []))


def status_and_code(denied: Denied | type[Denied]) -> tuple[int, str]:
    """The HTTP status of a refusal, and its code for programs."""
    kind = denied.entry.kind
    return STATUSES.get(kind, CONFLICT), CODES.get(kind, denied.reason)


def failure_text(reason: str, wait_s: float) -> str:
    """The public words of a failed turn; `wait_s` is how long its caller waited."""
    entry = find_failure(reason)
    return OWN_FAILURE_TEXTS.get(entry.reason, entry.text).format(agent="it", wait_s=wait_s)
