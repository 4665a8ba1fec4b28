"""The texts of refusals and failures never change, and docs/reference/errors.md is made from their registry."""

from dataclasses import replace

from a2a_bridge.wire.errors import denied_text, failure_text
from agents.core.errors import (
    REFUSALS,
    Blocked,
    Busy,
    Cycle,
    Ended,
    Halted,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCallerCostLimit,
    OverCap,
    OverCostLimit,
    OverGroupBudget,
    RateLimited,
    TooDeep,
    WaitAbandoned,
)
from agents.links.channel.refusals import refusal_text
from agents.models import Turn
from agents.models.choices import TurnFailure
from gateway.wire.errors import denied_error
from kit.asgi import RETRY_SOON
from lab import errors_page
from openai_api.wire.errors import refusal_of_denied
from operators.wire.errors import describe_error

SAID = [
    (Offline(), "agent channel offline"),
    (Busy(), "agent is processing a turn for another caller"),
    (OverCap(3), "agent already holds 3 of your questions"),
    (OverBudget(50), "agent @owner/slug hit its daily budget (50)"),
    (
        OverCallerBudget(5),
        "you hit your daily budget (5) at agent @owner/slug, free again at 00:00 UTC",
    ),
    (
        OverGroupBudget(5),
        "your group hit its daily budget (5) at agent @owner/slug, free again at 00:00 UTC",
    ),
    (OverCostLimit(), "agent @owner/slug reached its cost limit of today, free again at 00:00 UTC"),
    (
        OverCallerCostLimit(),
        "your questions reached the cost limit of today at agent @owner/slug, free again at 00:00 UTC",
    ),
    (Blocked(), "agent @owner/slug does not take your questions"),
    (Halted(), "agent @owner/slug is halted"),
    (Halted(is_caller=True), "your questions are halted"),
    (WaitAbandoned(), "the question was withdrawn before the agent was free; send it again to ask"),
    (Ended(), "the question that this one is asked for has ended"),
    (TooDeep(), "too many agents passed this question on"),
    (Cycle(), "this question came through the same agent already"),
    (RateLimited(7), "over your rate limit, retry in 7 s"),
]


def test_the_page_says_what_the_registry_says() -> None:
    assert errors_page.PAGE.read_text() == errors_page.page(), (
        "run `python -m lab.in_django lab.errors_page:write`"
    )


def test_the_words_of_a_denial_never_change() -> None:
    for denied, text in SAID:
        assert denied_text(denied, "owner/slug") == text, (denied, text)


def test_the_words_of_every_denial_are_checked() -> None:
    assert {type(denied) for denied, _ in SAID} == set(REFUSALS)


def test_the_text_of_a_failure_is_complete() -> None:
    for failure in TurnFailure:
        text = failure_text(failure, 60)
        assert text, failure
        assert "{" not in text, failure


def test_a_timeout_names_the_wait_as_the_page_does() -> None:
    assert failure_text(TurnFailure.TIMEOUT, 60.0) == "agent did not reply within 60s"
    assert failure_text(TurnFailure.TIMEOUT, 2.5) == "agent did not reply within 2.5s"


def test_reasons_are_distinct_and_fit_their_column() -> None:
    reasons = [denied.reason for denied in REFUSALS] + [str(failure) for failure in TurnFailure]
    assert len(set(reasons)) == len(reasons)
    assert max(map(len, reasons)) <= Turn._meta.get_field("reason").max_length


def test_a_new_reason_is_one_entry() -> None:
    class OutOfPaper(Busy):
        entry = replace(Busy.entry, reason="out_of_paper", text="{agent} is out of paper", agent="")

    denied = OutOfPaper()
    assert denied_text(denied, "alice/notes") == "agent @alice/notes is out of paper"
    assert refusal_text(denied, "alice/notes") == "@alice/notes is out of paper"
    operator = describe_error(denied)
    assert (operator.status, operator.code, str(operator)) == (409, "out_of_paper", "it is out of paper")
    of_openai = refusal_of_denied(denied, "alice/notes")
    assert (of_openai.status, of_openai.code, of_openai.headers) == (429, "out_of_paper", (RETRY_SOON,))
    frame = denied_error(denied)
    assert (frame.code.name, frame.reason, str(frame)) == (
        "AGENT_BUSY",
        "out_of_paper",
        "the agent is out of paper",
    )
