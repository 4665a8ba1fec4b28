"""The rules by which votes decide a proposal (section 12). Pure functions.

For the three members of a triad and the threshold `simple`: approved with two approvals. Abstentions and members
who did not vote count for neither side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

APPROVE, REJECT = "approve", "reject"
APPROVED, REJECTED = "approved", "rejected"
DELIBERATING, BLOCKED, ESCALATED = "deliberating", "blocked", "escalated"

DEFAULT_S = 300
LONGEST_S = 86_400
TIE_BREAK_S = 300
CATEGORY_S = {"minor": 60, "standard": DEFAULT_S, "major": 600, "fundamental": 900}


@dataclass(frozen=True, slots=True)
class VoteResult:
    """The result of the votes. `state`: `deliberating` while votes can change it, `blocked` without a majority."""

    state: str
    consensus: bool = False

    @property
    def is_open(self) -> bool:
        """True if votes still count."""
        return self.state in (DELIBERATING, ESCALATED)


def votes_needed(members: int, threshold: str) -> int:
    """The number of equal votes that decide: over half (`simple`), two thirds (`supermajority`), or all
    (`unanimous`).
    """
    if threshold == "unanimous":
        return members
    if threshold == "supermajority":
        return -(-2 * members // 3)
    return members // 2 + 1


def decide(votes: Mapping[str, str], members: Sequence[str], threshold: str, *, is_over: bool) -> VoteResult:
    """Decide by the last vote of each member. `is_over`: the deadline has passed."""
    cast = [votes[name] for name in members if name in votes]
    needed = votes_needed(len(members), threshold)
    approvals, rejections = cast.count(APPROVE), cast.count(REJECT)
    if approvals >= needed:
        return VoteResult(APPROVED, consensus=True)
    if rejections >= needed:
        return VoteResult(REJECTED, consensus=True)
    if is_over or max(approvals, rejections) + len(members) - len(cast) < needed:
        return VoteResult(BLOCKED)
    return VoteResult(DELIBERATING)


def break_tie(votes: Mapping[str, str], steward: str, *, is_over: bool) -> VoteResult:
    """Decide a blocked proposal by the vote of the steward; without one it is rejected at the deadline."""
    found = votes.get(steward)
    if found == APPROVE:
        return VoteResult(APPROVED)
    return VoteResult(REJECTED if found == REJECT or is_over else ESCALATED)
