"""Explains to callers and owners how asks ended; the registry has the explanations of single reasons.

Programs read other texts, which never change (`EndReason.text`).
"""

from collections.abc import Mapping
from dataclasses import replace

from agents.core.errors import REFUSALS, Busy
from agents.core.failures import FAILURES
from agents.core.reasons import Explanation
from agents.models.choices import Interruption, Outcome, TurnFailure

COMPLETED: Mapping[str, Explanation] = {
    "": Explanation(label="answered", caller="The agent answered."),
    Interruption.INPUT_REQUIRED: Explanation(
        label="asked back", caller="The agent asks you something.", owner="The agent asked back."
    ),
    Interruption.AUTH_REQUIRED: Explanation(
        label="asked for permission",
        caller="The agent asks you for a permission or credentials.",
        owner="The agent asked for a permission or credentials.",
    ),
}
IN_PROGRESS = Explanation(
    label="in progress", caller="The agent has your question.", owner="The agent has the question."
)
# For an ask that an agent made: the ask ended with its parent; neither the agent nor its caller canceled the ask.
CANCELED_ONWARD = replace(
    FAILURES[TurnFailure.CANCELED],
    caller="An agent asked this for a question that has ended since.",
    owner="Another agent asked this for a question that has ended since.",
)
# The labels of outcomes, each of which has several reasons.
OUTCOME_LABELS: Mapping[Outcome | None, str] = {
    Outcome.COMPLETED: COMPLETED[""].label,
    Outcome.FAILED: "not answered",
    Outcome.DENIED: Busy.entry.label,
    None: IN_PROGRESS.label,
}
BY_REASON: Mapping[Outcome, Mapping[str, Explanation]] = {
    Outcome.COMPLETED: COMPLETED,
    Outcome.FAILED: FAILURES,
    Outcome.DENIED: {denied.reason: denied.entry for denied in REFUSALS},
}


def explain(outcome: str | None, reason: str = "", *, depth: int = 0) -> Explanation:
    """Explain how a stored ask ended, or that it has not ended. `depth`: how many agents passed the ask on.

    A reason that this release does not know, from before a downgrade, is itself the text.
    """
    if outcome is None:
        return IN_PROGRESS
    if depth and reason == TurnFailure.CANCELED:
        return CANCELED_ONWARD
    known = Outcome(outcome)
    if (found := BY_REASON[known].get(reason)) is not None:
        return found
    words = f"{reason.replace('_', ' ').capitalize() or 'No reason is known'}."
    return Explanation(label=OUTCOME_LABELS[known], caller=words, owner=words, is_fault=known is Outcome.FAILED)
