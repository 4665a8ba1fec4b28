"""The table of explanations is complete for each end and each reader, and agrees with the documents."""

from a2a_bridge.surface.reference import lines
from agents.core import explanations
from agents.core.explanations import (
    BY_REASON,
    COMPLETED,
    DENIED,
    FAILED,
    OUTCOME_LABELS,
    REMOVED,
    ClaimState,
    explain,
)
from agents.models.choices import Failure, Interruption, Outcome
from tests.repository.test_error_tables import all_denials

ENDS = [(outcome, reason) for outcome, ends in BY_REASON.items() for reason in ends]
ALL = [explain(outcome, reason) for outcome, reason in ENDS] + [
    explanations.IN_PROGRESS,
    explanations.CANCELED_ONWARD,
]
# The beginnings of the column "Claim" of docs/reference/errors.md.
CLAIMS = {
    "freed": {ClaimState.FREED, ClaimState.OFFLINE},
    "lingers, up to 60 s": {ClaimState.LINGERS},
    "lingers until the agent has finished": {ClaimState.LINGERS},
    "lingers until the agent's socket is gone": {ClaimState.LINGERS_CONNECTED},
    "until the reaper": {ClaimState.UNTIL_RECORDED},
}


def test_every_outcome_and_reason_is_explained() -> None:
    assert set(BY_REASON) == set(Outcome)
    assert set(DENIED) == set(all_denials())
    assert set(BY_REASON[Outcome.DENIED]) == {denied.reason for denied in all_denials()}
    assert set(FAILED) == {*Failure, REMOVED}
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
        assert "you" not in one.owner.lower(), one


# staff and people with a share read it, too


def test_an_agent_that_asked_another_reads_a_clause_where_there_is_no_reply() -> None:
    for one in (*DENIED.values(), *FAILED.values()):
        assert one.agent
        assert not one.agent.endswith(".")
    assert not any(one.agent for one in COMPLETED.values())


def test_owners_can_tell_the_reasons_apart() -> None:
    owners = [explain(outcome, reason).owner for outcome, reason in ENDS]
    assert len(set(owners)) == len(owners)


def test_a_cancel_and_a_refusal_are_no_faults() -> None:
    assert not any(one.is_fault for one in (*DENIED.values(), *COMPLETED.values()))
    calm = {reason for reason, one in FAILED.items() if not one.is_fault}
    assert calm == {Failure.CANCELED, Failure.REJECTED, Failure.HALTED, Failure.AGENT_CANCELED}
    canceled = FAILED[Failure.CANCELED]
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
    assert onward.remains == FAILED[Failure.CANCELED].remains


def test_the_budget_and_the_claim_are_those_of_the_reference() -> None:
    rows = {lines.plain(row[0]): row for row in lines.rows("errors.md", "Failures")}
    assert set(rows) == set(Failure)
    for reason, row in rows.items():
        one = FAILED[reason]
        assert one.is_counted is (row[3] == "yes"), reason
        assert one.is_counted or row[3] == "returned"
        [claims] = [known for begins, known in CLAIMS.items() if row[4].startswith(begins)]
        assert one.claim in claims, reason
    assert all(one.is_counted is None and one.claim is None for one in DENIED.values())


def test_a_reason_of_a_later_release_is_shown_as_it_is() -> None:
    found = explain("failed", "out_of_paper")
    assert (found.label, found.caller, found.is_fault) == ("not answered", "Out of paper.", True)
    assert explain("denied").owner == "No reason is known."
    assert explain(None).label == "in progress"
