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
class Verdict:
    """The result of the votes. `state`: `deliberating` while votes can change it, `blocked` without a majority.

    `missing`: the members who did not vote.
    """

    state: str
    consensus: bool = False
    unanimous: bool = False
    missing: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether votes still count."""
        return self.state in (DELIBERATING, ESCALATED)

    @property
    def result(self) -> str:
        """The result on the wire; empty while it is open."""
        if self.is_open:
            return ""
        return APPROVED if self.state == APPROVED else REJECTED


def votes_needed(members: int, threshold: str) -> int:
    """How many equal votes decide: over half (`simple`), two thirds (`supermajority`), or all (`unanimous`)."""
    if threshold == "unanimous":
        return members
    if threshold == "supermajority":
        return -(-2 * members // 3)
    return members // 2 + 1


def decide(votes: Mapping[str, str], members: Sequence[str], threshold: str, *, is_over: bool) -> Verdict:
    """Decide by the last vote of each member. `is_over`: the deadline has passed."""
    cast = [votes[name] for name in members if name in votes]
    missing = tuple(name for name in members if name not in votes)
    needed = votes_needed(len(members), threshold)
    approvals, rejections = cast.count(APPROVE), cast.count(REJECT)
    unanimous = len(members) in (approvals, rejections)
    if approvals >= needed:
        return Verdict(APPROVED, True, unanimous, missing)
    if rejections >= needed:
        return Verdict(REJECTED, True, unanimous, missing)
    if is_over or max(approvals, rejections) + len(missing) < needed:
        return Verdict(BLOCKED, missing=missing)
    return Verdict(DELIBERATING, missing=missing)


def break_tie(votes: Mapping[str, str], members: Sequence[str], steward: str, *, is_over: bool) -> Verdict:
    """Decide a blocked proposal by the vote of the steward; without one it is rejected at the deadline."""
    missing = tuple(name for name in members if name not in votes)
    found = votes.get(steward)
    if found == APPROVE:
        return Verdict(APPROVED, missing=missing)
    if found == REJECT or is_over:
        return Verdict(REJECTED, missing=missing)
    return Verdict(ESCALATED, missing=missing)
