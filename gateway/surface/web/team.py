"""`/desk/team`: the agents of a team, its proposals, and the latest frames without their content."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Case, Prefetch, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path

from accounts.models import User
from agents.web.desk import owner_page
from gateway.models import FrameRecord, Proposal, Vote
from gateway.service.team.registry import Member, load_members
from gateway.surface.web import changes
from kit.clock import db_now, iso

PROPOSALS_ON_A_PAGE = 10
FRAMES_SHOWN = 50
MOST_VOTES_SHOWN = 200
VOTES = ("approve", "reject", "abstain")
GOOD_STATES = (Proposal.State.APPROVED,)
BAD_STATES = (Proposal.State.REJECTED, Proposal.State.BLOCKED)


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """A proposal with the votes that count, by what was voted. `left_ms`: until its deadline, while it is open."""

    proposal: Proposal
    tally: Sequence[tuple[str, int]]
    missing: Sequence[str]
    left_ms: int | None

    @property
    def is_open(self) -> bool:
        """Whether it is not decided."""
        return self.left_ms is not None

    @property
    def until(self) -> str:
        """Its deadline, as scripts read it."""
        return iso(self.proposal.deadline)

    @property
    def mark(self) -> str:
        """The class of the badge of its state."""
        if self.proposal.state in GOOD_STATES:
            return "good"
        return "bad" if self.proposal.state in BAD_STATES else ""


@owner_page
def team(request: HttpRequest, visitor: User) -> HttpResponse:
    """The page; its script asks for it again every few seconds."""
    owner = get_team_owner(request, visitor)
    members = load_members(owner.pk)
    proposals = _proposals(owner)
    open_first = Case(When(state__in=Proposal.OPEN, then=0), default=1)
    paginator = Paginator(proposals.order_by(open_first, "-created_at", "-pk"), PROPOSALS_ON_A_PAGE)
    page = paginator.get_page(request.GET.get("proposals"))
    context = {
        **_about(owner, visitor),
        "members": members,
        "figures": _sum_up(members, proposals.filter(state__in=Proposal.OPEN).count()),
        "proposals": page,
        "proposal_rows": show_proposals(page, db_now()),
        "frames": FrameRecord.objects.filter(owner=owner).order_by("-at", "-pk")[:FRAMES_SHOWN],
        "most_frames": FRAMES_SHOWN,
    }
    return render(request, "gateway/team.html", context)


@owner_page
def proposal(request: HttpRequest, visitor: User, proposal_id: int) -> HttpResponse:
    """One proposal: what it says, who voted how, what came too late or was replaced, and the decision."""
    owner = get_team_owner(request, visitor)
    found = _proposals(owner).filter(pk=proposal_id).first()
    if found is None:
        raise Http404
    votes = list(found.votes.order_by("-voted_at", "-pk")[:MOST_VOTES_SHOWN])
    standing = {one.voter: one for one in votes if one.counts}
    [row] = show_proposals([found], db_now())
    context = {
        **_about(owner, visitor),
        "row": row,
        "proposal": found,
        "ballot": [(name, standing.get(name)) for name in found.members],
        "steward_vote": standing.get(found.steward) if found.steward not in found.members else None,
        "past": [one for one in votes if not one.counts],
    }
    return render(request, "gateway/proposal.html", context)


def get_team_owner(request: HttpRequest, visitor: User) -> User:
    """The owner of the team that a page shows: the visitor, or for the staff the user that `?of=` names.

    Raises:
        Http404: there is no such user, or the visitor may not see the team.
    """
    login = request.GET.get("of", "")
    if not login or login == visitor.login:
        return visitor
    found = User.objects.filter(login__iexact=login[:64]).first() if visitor.is_staff else None
    if found is None:
        raise Http404
    return found


def show_proposals(proposals: Iterable[Proposal], now: datetime) -> list[ProposalRow]:
    """Proposals whose votes are loaded, as rows."""
    return [_row(one, now) for one in proposals]


def _proposals(owner: User) -> Any:
    standing = Prefetch("votes", Vote.objects.filter(counts=True), to_attr="standing")
    return Proposal.objects.filter(owner=owner).prefetch_related(standing)


def _row(proposal: Proposal, now: datetime) -> ProposalRow:
    standing: list[Vote] = proposal.standing  # type: ignore[attr-defined]  # prefetched
    counts = Counter(one.vote for one in standing)
    voted = {one.voter for one in standing}
    left = round((proposal.deadline - now).total_seconds() * 1000)
    return ProposalRow(
        proposal,
        [(vote, counts[vote]) for vote in VOTES],
        [name for name in proposal.members if name not in voted],
        max(0, left) if proposal.state in Proposal.OPEN else None,
    )


def _sum_up(members: Sequence[Member], open_proposals: int) -> dict[str, int]:
    return {
        "connected": sum(one.is_connected for one in members),
        "agents": len(members),
        "queued": sum(one.queued for one in members),
        "dead": sum(one.dead for one in members),
        "sessions": sum(one.sessions for one in members),
        "open_proposals": open_proposals,
    }


def _about(owner: User, visitor: User) -> dict[str, Any]:
    is_own = owner.pk == visitor.pk
    return {"owner": owner, "is_own": is_own, "keep": "" if is_own else urlencode({"of": owner.login})}


urlpatterns = [  # `hub/urls.py` includes them where the gateway is on
    path("desk/team", team, name="desk-team"),
    path("desk/team/rules", changes.rules, name="desk-team-rules"),
    path("desk/team/agents/<slug:agent_name>", changes.agent, name="desk-team-agent"),
    path("desk/team/proposals/<int:proposal_id>", proposal, name="desk-team-proposal"),
]
