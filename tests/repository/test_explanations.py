"""The explanations are complete for each end and each reader."""

from agents.core import explanations
from agents.core.explanations import BY_REASON, COMPLETED, OUTCOME_LABELS, explain
from agents.core.failures import FAILURES, REMOVED
from agents.core.reasons import EndReason
from agents.models.choices import Interruption, Outcome, TurnFailure

ENDS = [(outcome, reason) for outcome, ends in BY_REASON.items() for reason in ends]
ALL = [explain(outcome, reason) for outcome, reason in ENDS] + [
    explanations.IN_PROGRESS,
    explanations.CANCELED_ONWARD,
]


def test_every_outcome_and_reason_is_explained() -> None:
    assert set(BY_REASON) == set(Outcome)
    assert set(FAILURES) == {*TurnFailure, REMOVED}
    assert set(COMPLETED) == {"", *Interruption}
    assert set(OUTCOME_LABELS) == {None, *Outcome}


def test_each_reader_gets_whole_sentences() -> None:
    for one in ALL:
        assert one.label == one.label.lower().strip(), one
        for text in filter(None, (one.caller, one.owner, one.advice, one.counted, one.remains)):
            assert text[0].isupper(), one
            assert text.endswith((".", "?")), text
            assert ";" not in text, one
            assert "{" not in text, one
        assert one.caller, one
        assert one.owner, one
        assert "you" not in one.owner.lower(), one  # staff and people with a share read it, too


def test_an_agent_that_asked_another_reads_a_clause() -> None:
    for one in (*BY_REASON[Outcome.DENIED].values(), *FAILURES.values()):
        assert isinstance(one, EndReason)
        assert not (one.agent or one.text).endswith(".")


def test_owners_can_tell_the_reasons_apart() -> None:
    owners = [explain(outcome, reason).owner for outcome, reason in ENDS]
    assert len(set(owners)) == len(owners)


def test_a_cancel_and_a_refusal_are_no_faults() -> None:
    assert not any(one.is_fault for one in (*BY_REASON[Outcome.DENIED].values(), *COMPLETED.values()))
    calm = {reason for reason, one in FAILURES.items() if not one.is_fault}
    by_agent = {TurnFailure.REJECTED, TurnFailure.AGENT_CANCELED}
    assert calm == by_agent | {TurnFailure.CANCELED, TurnFailure.HALTED, TurnFailure.ACCESS_ENDED}
    canceled = FAILURES[TurnFailure.CANCELED]
    assert (canceled.label, canceled.caller, canceled.counted) == (
        "canceled",
        "You canceled this.",
        "It counts in today’s budget.",
    )
    assert canceled.owner == "The caller canceled this."
    assert canceled.remains == (
        "It counts in the day’s budget. The agent answers no other caller until it has finished, for at most 60 s."
    )


def test_an_ask_of_an_agent_was_not_canceled_by_its_caller() -> None:
    onward = explain("failed", "canceled", depth=1)
    assert onward.label == "canceled"
    assert "caller" not in onward.owner
    assert onward.remains == FAILURES[TurnFailure.CANCELED].remains


def test_a_reason_of_a_later_release_is_shown_as_it_is() -> None:
    found = explain("failed", "out_of_paper")
    assert (found.label, found.caller, found.is_fault) == ("not answered", "Out of paper.", True)
    assert explain("denied").owner == "No reason is known."
    assert explain(None).label == "in progress"
