"""Whatever an agent's request can come to has its words and its frames."""

from typing import get_args

import pytest

from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget
from agents.core.errors import (
    Blocked,
    Busy,
    Cycle,
    Denied,
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
from agents.links.channel import refusals
from agents.links.channel.frames import ProbeRequest, Request
from agents.links.channel.refusals import (
    failure_text,
    refusal_text,
    refuse,
)
from agents.models.choices import Failure

DENIALS = [
    (Offline(), "@alice/helper is offline"),
    (Busy(), "@alice/helper is processing a turn for another caller"),
    (OverCap(3), "@alice/helper already holds 3 questions of the same caller"),
    (OverBudget(50), "@alice/helper hit its daily budget (50)"),
    (
        OverCallerBudget(5),
        "the caller hit their daily budget (5) at @alice/helper, free again at 00:00 UTC",
    ),
    (OverCostLimit(), "@alice/helper reached its cost limit of today, free again at 00:00 UTC"),
    (
        OverCallerCostLimit(),
        "the caller reached the cost limit of today at @alice/helper, free again at 00:00 UTC",
    ),
    (Blocked(), "@alice/helper does not take questions of this caller"),
    (Halted(), "@alice/helper is halted"),
    (Halted(is_caller=True), "the caller's questions are halted"),
    (WaitAbandoned(), "the question was withdrawn before @alice/helper was free; send it again to ask"),
    (Ended(), "the question that you ask this for was canceled or failed, stop working on it"),
    (TooDeep(), "too many agents passed this question on, answer without asking another"),
    (Cycle(), "the question came through @alice/helper already, answer without asking it again"),
    (RateLimited(7), "the caller is over the rate limit, retry in 7 s"),
]
FAILURES = {
    Failure.TIMEOUT: "@alice/helper did not reply in time; the reply may still come, but not here",
    Failure.CHANNEL_LOST: "@alice/helper went offline before it replied",
    Failure.NOT_DELIVERED: "@alice/helper is offline",
    Failure.REPLY_TOO_LARGE: "the reply of @alice/helper was over the size limit",
    Failure.REPLY_LOST: "part of the reply of @alice/helper was lost",
    Failure.PROCESS_DIED: "the hub stopped before @alice/helper replied",
    Failure.SHUTDOWN: "the hub stopped before @alice/helper replied",
    Failure.NOT_RECORDED: "the hub could not record the reply of @alice/helper",
    Failure.CANCELED: "the question to @alice/helper was canceled",
    Failure.HALTED: "@alice/helper or the caller was halted before it replied",
    Failure.AGENT_FAILED: "@alice/helper failed",
    Failure.REJECTED: "@alice/helper refused the question",
    Failure.AGENT_CANCELED: "@alice/helper canceled the question",
}


@pytest.mark.parametrize(("denied", "words"), DENIALS, ids=lambda one: getattr(one, "reason", ""))
def test_the_words_of_a_denial(denied: Denied, words: str) -> None:
    assert refusal_text(denied, "alice/helper") == words


def test_the_words_of_a_failure() -> None:
    assert {failure: failure_text(failure, "alice/helper") for failure in Failure} == FAILURES
    assert failure_text("deleted", "alice/helper") == "@alice/helper was removed"
    assert failure_text(Failure.REJECTED, "{x}", "not {today}") == "@{x} refused the question: not {today}"


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (NoSuchTarget(), "there is no @a/{b} that may be asked"),
        (NotPublished(), "there is no @a/{b} that may be asked"),
        (AmbiguousPeer("several"), "several"),
        (FileGone(), refusals.FILE_GONE),
        (Unavailable(), Unavailable.text),
        (Cycle(), "the question came through @a/{b} already, answer without asking it again"),
    ],
)
def test_why_nothing_was_asked_is_said(refusal: Exception, words: str) -> None:
    assert refusal_text(refusal, "a/{b}") == words


@pytest.mark.parametrize("kind", get_args(Request), ids=lambda one: one.__name__)
def test_every_request_can_be_ended_with_nothing(kind: type[Request]) -> None:
    fields = kind.__struct_fields__
    named = {name: "x" for name in ("peer", "handle") if name in fields}
    asked = {"prompt": "?"} if "prompt" in fields else {}
    frames = refuse(kind(correlation_id="c", **named, **asked), "isolated", "no", login="alice")
    assert frames[0].correlation_id == "c"
    assert len(frames) == (1 if named else 2)
    assert getattr(frames[0], "done", None) is (True if kind is ProbeRequest else None)
