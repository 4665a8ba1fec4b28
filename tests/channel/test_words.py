"""Every result of an agent's request has its words and its frames."""

from typing import get_args

import pytest

from agents.core import errors
from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget
from agents.links.channel import refusals
from agents.links.channel.frames import ProbeRequest, Request
from agents.links.channel.refusals import (
    failure_text,
    refusal_text,
    refuse,
)
from agents.models.choices import TurnFailure

DENIALS = [
    (errors.Offline(), "@alice/helper is offline"),
    (errors.Busy(), "@alice/helper is processing a turn for another caller"),
    (errors.OverCap(3), "@alice/helper already holds 3 questions of the same caller"),
    (errors.OverBudget(50), "@alice/helper hit its daily budget (50)"),
    (
        errors.OverCallerBudget(5),
        "the caller hit their daily budget (5) at @alice/helper, free again at 00:00 UTC",
    ),
    (
        errors.OverGroupBudget(5),
        "the caller's group hit its daily budget (5) at @alice/helper, free again at 00:00 UTC",
    ),
    (errors.OverCostLimit(), "@alice/helper reached its cost limit of today, free again at 00:00 UTC"),
    (
        errors.OverCallerCostLimit(),
        "the caller reached the cost limit of today at @alice/helper, free again at 00:00 UTC",
    ),
    (errors.Blocked(), "@alice/helper does not take questions of this caller"),
    (errors.Halted(), "@alice/helper is halted"),
    (errors.Halted(is_caller=True), "the caller's questions are halted"),
    (errors.WaitAbandoned(), "the question was withdrawn before @alice/helper was free; send it again to ask"),
    (errors.Ended(), "the question that you ask this for was canceled or failed, stop working on it"),
    (errors.TooDeep(), "too many agents passed this question on, answer without asking another"),
    (errors.Cycle(), "the question came through @alice/helper already, answer without asking it again"),
    (errors.RateLimited(7), "the caller is over the rate limit, retry in 7 s"),
]
FAILURES = {
    TurnFailure.TIMEOUT: "@alice/helper did not reply in time; the reply may still come, but not here",
    TurnFailure.CHANNEL_LOST: "@alice/helper went offline before it replied",
    TurnFailure.NOT_DELIVERED: "@alice/helper is offline",
    TurnFailure.REPLY_TOO_LARGE: "the reply of @alice/helper was over the size limit",
    TurnFailure.REPLY_LOST: "part of the reply of @alice/helper was lost",
    TurnFailure.PROCESS_DIED: "the hub stopped before @alice/helper replied",
    TurnFailure.SHUTDOWN: "the hub stopped before @alice/helper replied",
    TurnFailure.NOT_RECORDED: "the hub could not record the reply of @alice/helper",
    TurnFailure.CANCELED: "the question to @alice/helper was canceled",
    TurnFailure.HALTED: "@alice/helper or the caller was halted before it replied",
    TurnFailure.ACCESS_ENDED: "the caller may not ask @alice/helper any more",
    TurnFailure.AGENT_FAILED: "@alice/helper failed",
    TurnFailure.REJECTED: "@alice/helper refused the question",
    TurnFailure.AGENT_CANCELED: "@alice/helper canceled the question",
}


def test_the_words_of_a_denial() -> None:
    assert [refusal_text(denied, "alice/helper") for denied, _ in DENIALS] == [words for _, words in DENIALS]
    assert {type(denied) for denied, _ in DENIALS} == set(errors.Denied.__subclasses__())


def test_the_words_of_a_failure() -> None:
    assert {failure: failure_text(failure, "alice/helper") for failure in TurnFailure} == FAILURES
    assert failure_text("deleted", "alice/helper") == "@alice/helper was removed"
    assert failure_text(TurnFailure.REJECTED, "{x}", "not {today}") == "@{x} refused the question: not {today}"


def test_why_nothing_was_asked_is_said(subtests: pytest.Subtests) -> None:
    for refusal, words in (
        (NoSuchTarget(), "there is no @a/{b} that may be asked"),
        (errors.NotPublished(), "there is no @a/{b} that may be asked"),
        (AmbiguousPeer("several"), "several"),
        (errors.FileGone(), refusals.FILE_GONE),
        (errors.Unavailable(), errors.Unavailable.text),
        (errors.Cycle(), "the question came through @a/{b} already, answer without asking it again"),
    ):
        with subtests.test(refusal=refusal):
            assert refusal_text(refusal, "a/{b}") == words


def test_every_request_can_be_ended_with_nothing(subtests: pytest.Subtests) -> None:
    for kind in get_args(Request):
        with subtests.test(kind=kind):
            fields = kind.__struct_fields__
            named = {name: "x" for name in ("peer", "handle") if name in fields}
            asked = {"prompt": "?"} if "prompt" in fields else {}
            frames = refuse(kind(correlation_id="c", **named, **asked), "isolated", "no", login="alice")
            assert frames[0].correlation_id == "c"
            assert len(frames) == (1 if named else 2)
            assert getattr(frames[0], "done", None) is (True if kind is ProbeRequest else None)
