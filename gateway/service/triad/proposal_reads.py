"""Proposals as rows, for the seats that take part in them and for services. Synchronous."""

from collections.abc import Collection
from typing import NamedTuple

from gateway import limits
from gateway.models import Proposal, Vote
from gateway.service.triad.proposal_frames import decision_frame, proposal_frame, show_proposal, show_with_votes
from gateway.service.triad.proposals import get_proposal
from gateway.wire.frames import Json

State = Proposal.State


class Awaited(NamedTuple):
    """A frame about a proposal that a seat awaits. `proposal_id`: the row."""

    proposal_id: int
    frame: Json


def load_open(owner_id: int, name: str) -> list[Awaited]:
    """The open proposals on which an agent may vote and has not, oldest first; its seat was just taken."""
    team = Proposal.objects.filter(owner_id=owner_id, decided_at=None).order_by("pk")
    voted = set(
        Vote.objects.filter(proposal__in=team, voter=name, counts=True).values_list("proposal_id", flat=True)
    )
    found = [one for one in team[: limits.OPEN_PROPOSALS.most] if one.pk not in voted and name in _voters_of(one)]
    pending = [one.pk for one in found if one.state == State.PENDING]
    Proposal.objects.filter(pk__in=pending, state=State.PENDING).update(state=State.DELIBERATING)
    return [Awaited(one.pk, proposal_frame(one, _votes_of(one))) for one in found]


def load_decisions(owner_id: int, name: str) -> list[Awaited]:
    """The decisions on what an agent proposed that its seat was not sent yet, oldest first."""
    awaited = Proposal.objects.filter(owner_id=owner_id, proposer=name, awaits_decision=True)
    found = awaited.exclude(decided_at=None).order_by("pk")[: limits.OPEN_PROPOSALS.most]
    return [Awaited(one.pk, decision_frame(one, _votes_of(one))) for one in found]


def end_waits(proposal_ids: Collection[int]) -> None:
    """Note that the proposer's seat was sent the decisions."""
    Proposal.objects.filter(pk__in=proposal_ids, awaits_decision=True).update(awaits_decision=False)


def find_decision(proposal_id: int) -> Json | None:
    """The decision on a proposal as a frame; None while it is open."""
    proposal = Proposal.objects.filter(pk=proposal_id).exclude(decided_at=None).first()
    return decision_frame(proposal, _votes_of(proposal)) if proposal else None


def show_one(owner_id: int, name: str) -> Json:
    """A proposal with its votes, as a service shows it.

    Raises:
        FrameRefused: 2005 `proposal_not_found`.
    """
    proposal = get_proposal(owner_id, name)
    return show_with_votes(proposal, list(Vote.objects.filter(proposal=proposal).order_by("pk")))


def show_latest(owner_id: int, state: str, limit: int) -> list[Json]:
    """The latest proposals of a team, newest first; of one state, unless it is empty."""
    found = Proposal.objects.filter(owner_id=owner_id, **({"state": state} if state else {}))
    return [show_proposal(one) for one in found.order_by("-created_at", "-pk")[:limit]]


def _voters_of(proposal: Proposal) -> Collection[str]:
    return [proposal.steward] if proposal.state == State.ESCALATED else proposal.members


def _votes_of(proposal: Proposal) -> list[Vote]:
    return list(Vote.objects.filter(proposal=proposal, counts=True))
