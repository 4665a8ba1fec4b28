"""Whatever the core can refuse or fail with has its public words on every surface."""

from collections.abc import Iterator

from a2a_bridge.wire.errors import DENIED_TEXT, FAILURE_TEXT, denied_text, failure_text
from agents.core.errors import (
    Blocked,
    Busy,
    Cycle,
    Denied,
    Ended,
    Halted,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCallerCostLimit,
    OverCap,
    OverCostLimit,
    RateLimited,
    TooDeep,
    WaitAbandoned,
)
from agents.models import Turn
from agents.models.choices import Failure

SAID = [
    (Offline(), "agent channel offline"),
    (Busy(), "agent is processing a turn for another caller"),
    (OverCap(3), "agent already holds 3 of your questions"),
    (OverBudget(50), "agent @owner/slug hit its daily budget (50)"),
    (
        OverCallerBudget(5),
        "you hit your daily budget (5) at agent @owner/slug, free again at 00:00 UTC",
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


def all_denials(parent: type[Denied] = Denied) -> Iterator[type[Denied]]:
    for child in parent.__subclasses__():
        yield child
        yield from all_denials(child)


def test_every_denial_has_its_text() -> None:
    assert set(all_denials()) == set(DENIED_TEXT)


def test_the_words_of_a_denial_never_change() -> None:
    for denied, text in SAID:
        assert denied_text(denied, "owner/slug") == text, (denied, text)


def test_the_words_of_every_denial_are_checked() -> None:
    assert {type(denied) for denied, _ in SAID} == set(all_denials())


def test_every_failure_has_its_text() -> None:
    assert set(FAILURE_TEXT) == set(Failure)


def test_the_text_of_a_failure_is_complete() -> None:
    for failure in Failure:
        text = failure_text(failure, 60)
        assert text, failure
        assert "{" not in text, failure


def test_a_timeout_names_the_wait_as_the_page_does() -> None:
    assert failure_text(Failure.TIMEOUT, 60.0) == "agent did not reply within 60s"
    assert failure_text(Failure.TIMEOUT, 2.5) == "agent did not reply within 2.5s"


def test_reasons_are_distinct_and_fit_their_column() -> None:
    reasons = [denied.reason for denied in all_denials()] + [str(failure) for failure in Failure]
    assert len(set(reasons)) == len(reasons)
    assert max(map(len, reasons)) <= Turn._meta.get_field("reason").max_length
