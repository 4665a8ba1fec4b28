"""Proposals of a team: how votes decide (section 12), and the rows: propose, vote, decide. Synchronous.

Each function is one transaction that locks the proposal's row, and a decision is an update of an undecided row: a
decision is therefore made once, however many votes come at one moment, in however many processes (docs/adr/0137).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from accounts import quotas
from gateway import limits
from gateway.models import Proposal, Vote
from gateway.service.proposal_reads import (
    APPROVE,
    REJECT,
    decision_frame,
    proposal_frame,
    unknown_proposal_error,
    vote_frame,
)
from gateway.service.pushes import load_connected
from gateway.service.registry import check_not_halted
from gateway.service.team_rules import get_policy
from gateway.service.triad import send_decision, send_to_seats, send_to_steward, send_to_subscribers
from gateway.wire.errors import bad_content, forbidden
from kit.clock import db_now, unix_ms
from kit.failpoints import reach
from kit.sql import AnyRow

State = Proposal.State

are_open = AnyRow(Proposal.objects.filter(state__in=Proposal.OPEN))  # proposals that are not decided yet

MAX_MEMBERS = 256
CLOSED_AT_ONCE = 100
DEFAULT_S = 300
LONGEST_S = 86_400
TIE_BREAK_S = 300
CATEGORY_S = {"minor": 60, "standard": DEFAULT_S, "major": 600, "fundamental": 900}


@dataclass(frozen=True, slots=True)
class VoteResult:
    """The result of the votes. `state`: `deliberating` while votes can change it, `blocked` without a majority."""

    state: Proposal.State
    consensus: bool = False

    @property
    def is_open(self) -> bool:
        """True if votes still count."""
        return self.state in (State.DELIBERATING, State.ESCALATED)


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
        return VoteResult(State.APPROVED, consensus=True)
    if rejections >= needed:
        return VoteResult(State.REJECTED, consensus=True)
    if is_over or max(approvals, rejections) + len(members) - len(cast) < needed:
        return VoteResult(State.BLOCKED)
    return VoteResult(State.DELIBERATING)


def break_tie(votes: Mapping[str, str], steward: str, *, is_over: bool) -> VoteResult:
    """Decide a blocked proposal by the vote of the steward; without one it is rejected at the deadline."""
    found = votes.get(steward)
    if found == APPROVE:
        return VoteResult(State.APPROVED)
    return VoteResult(State.REJECTED if found == REJECT or is_over else State.ESCALATED)


@transaction.atomic
def propose(owner_id: int, given: Proposal, deadline_ms: int | None = None) -> Proposal:
    """Store a proposal and send it to the members who are connected; the same one again changes nothing.

    `given`: the unsaved row, as the proposer wrote it. `deadline_ms`: None, by its category.

    Raises:
        FrameRefused: 2005 `correlation_in_use`, `deadline_past`, `deadline_too_far`, `no_members`; 1005;
            5004 while the owner is halted.
    """
    check_not_halted(owner_id)
    quotas.lock_owner(owner_id)
    if (repeated := _find_repeated(owner_id, given, deadline_ms)) is not None:
        return repeated
    now = db_now()
    deadline = _read_deadline(given.category, deadline_ms, now)
    limits.OPEN_PROPOSALS.check(owner_id)
    limits.KEPT_PROPOSALS.check(owner_id)
    policy = get_policy(owner_id)
    members = list(dict.fromkeys(policy.members))[:MAX_MEMBERS]
    if not members:
        raise bad_content("the team has no members who vote: its owner names them", reason="no_members")
    steward = policy.steward if policy.breaks_ties and policy.steward not in members else ""
    seats = load_connected(owner_id, members)
    given.owner_id, given.members, given.steward, given.threshold = owner_id, members, steward, policy.threshold
    given.state = State.DELIBERATING if seats else State.PENDING
    given.created_at, given.deadline = now, deadline
    given.save(force_insert=True)
    if seats:
        send_to_seats(given, proposal_frame(given), seats)
    return given


def cast_vote(owner_id: int, names: tuple[str, ...], given: Vote) -> Proposal:
    """Count a vote, and decide if it decides. The same vote again changes nothing, another one replaces it.

    `names`: the ids by which it names its proposal, all of one. `given`: the unsaved row, as the voter wrote it.

    Raises:
        FrameRefused: 2005 `proposal_not_found`; 5004 `not_triad_member`; 2005 `proposal_closed`: the vote is
            recorded as late; 1005.
    """
    with transaction.atomic():
        proposal = _lock(owner_id, names)
        now = db_now()
        if proposal.decided_at is None and now >= proposal.deadline:
            _decide(proposal, now)
        is_steward = proposal.state == State.ESCALATED and given.voter == proposal.steward
        if given.voter not in proposal.members and not is_steward:
            text = f"{given.voter or 'this client'} does not vote on this proposal"
            raise forbidden(text, reason="not_triad_member")
        is_late = proposal.decided_at is not None or (proposal.state == State.ESCALATED and not is_steward)
        if _record(proposal, given, now, is_late=is_late) and not is_late:
            _decide(proposal, now)
    if is_late:  # raised after the commit: the late vote stays in the history
        raise bad_content("this proposal takes no votes any more", reason="proposal_closed")
    return proposal


def close_due() -> int:
    """Decide the proposals whose deadline has passed; returns their number. Several processes may call this at
    once.
    """
    now = db_now()
    due = Proposal.objects.filter(state__in=Proposal.OPEN, deadline__lte=now).order_by("deadline")
    keys = list(due.values_list("pk", flat=True)[:CLOSED_AT_ONCE])
    for pk in keys:
        with transaction.atomic():
            locked = (
                Proposal.objects.select_for_update(no_key=True, skip_locked=True)
                .filter(pk=pk, decided_at=None)
                .first()
            )
            if locked is not None:
                _decide(locked, db_now())
    return len(keys)


def _lock(owner_id: int, names: tuple[str, ...]) -> Proposal:
    """The proposal that all of the names are of, locked."""
    of_team = Proposal.objects.select_for_update(no_key=True).filter(owner_id=owner_id)
    found = list(of_team.filter(Q(key__in=names) | Q(alias__in=names)).order_by("pk"))
    if not any(names[0] in (one.key, one.alias) for one in found):
        raise unknown_proposal_error()
    if len(found) > 1 or not {found[0].key, found[0].alias}.issuperset(names):
        text = "content.proposalId and the correlation id name two proposals"
        raise bad_content(text, field="content.proposalId")
    return found[0]


def _find_repeated(owner_id: int, given: Proposal, deadline_ms: int | None) -> Proposal | None:
    """The proposal, if it was made before.

    Raises:
        FrameRefused: another proposal has its id.
    """
    names = {given.key, given.alias} - {""}
    found = list(Proposal.objects.filter(Q(key__in=names) | Q(alias__in=names), owner_id=owner_id)[:2])
    if not found:
        return None
    first = found[0]
    before = (first.key, first.proposer, first.text, first.reasoning, first.category)
    is_same = before == (given.key, given.proposer, given.text, given.reasoning, given.category)
    is_same = is_same and first.carried.get("content", {}) == given.carried.get("content", {})
    if len(found) > 1 or not is_same or deadline_ms not in (None, unix_ms(first.deadline)):
        raise bad_content("another proposal has this id", reason="correlation_in_use")
    if given.home and first.home != given.home:
        first.home = given.home
        first.save(update_fields=["home"])
    return first


def _read_deadline(category: str, deadline_ms: int | None, now: datetime) -> datetime:
    field = "content.deadline"
    if deadline_ms is None:
        return now + timedelta(seconds=CATEGORY_S.get(category, DEFAULT_S))
    left_ms = deadline_ms - unix_ms(now)
    if left_ms <= 0:
        raise bad_content(f"{field}: this moment has passed", field=field, reason="deadline_past")
    if left_ms > LONGEST_S * 1000:
        text = f"{field}: a proposal is open for {LONGEST_S // 3600} hours at most"
        raise bad_content(text, field=field, reason="deadline_too_far")
    return datetime.fromtimestamp(deadline_ms / 1000, now.tzinfo)


def _record(proposal: Proposal, given: Vote, now: datetime, *, is_late: bool) -> bool:
    """Write a vote into the history; False if the same vote is there already."""
    of_voter = Vote.objects.filter(proposal=proposal, voter=given.voter)
    if of_voter.filter(vote=given.vote, is_late=is_late, **({} if is_late else {"counts": True})).exists():
        return False
    limits.VOTES.check_number(Vote.objects.filter(proposal=proposal).count())
    if not is_late:
        of_voter.filter(counts=True).update(counts=False)
    given.proposal, given.voted_at, given.counts, given.is_late = proposal, now, not is_late, is_late
    given.save(force_insert=True)
    if not is_late:
        send_to_subscribers(proposal, vote_frame(proposal, given), given.voter)
    return True


def _decide(proposal: Proposal, now: datetime) -> None:
    """Set the state that the votes make at this moment; the row is locked, and has no decision yet."""
    votes = list(Vote.objects.filter(proposal=proposal, counts=True))
    by_voter = {one.voter: one.vote for one in votes}
    is_over = now >= proposal.deadline
    if proposal.state == State.ESCALATED:
        verdict = break_tie(by_voter, proposal.steward, is_over=is_over)
    else:
        verdict = decide(by_voter, proposal.members, proposal.threshold, is_over=is_over)
    if verdict.state == State.BLOCKED and proposal.steward:
        proposal.state, proposal.deadline = State.ESCALATED, now + timedelta(seconds=TIE_BREAK_S)
        proposal.save(update_fields=["state", "deadline"])
        send_to_steward(proposal, proposal_frame(proposal, votes))
    elif verdict.is_open:
        if by_voter and proposal.state == State.PENDING:
            proposal.state = State.DELIBERATING
            proposal.save(update_fields=["state"])
    else:
        proposal.state, proposal.has_consensus, proposal.decided_at = verdict.state, verdict.consensus, now
        is_broken = by_voter.get(proposal.steward) in (APPROVE, REJECT)
        proposal.tie_broken_by = proposal.steward if is_broken else ""
        decided = {"state": proposal.state, "has_consensus": verdict.consensus, "decided_at": now}
        undecided = Proposal.objects.filter(pk=proposal.pk, decided_at=None)
        if undecided.update(**decided, tie_broken_by=proposal.tie_broken_by):
            send_decision(proposal, decision_frame(proposal, votes))
            if reach:
                reach("before-decision-commit")
