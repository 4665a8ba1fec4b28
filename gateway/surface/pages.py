"""Pages of a team on its owner's desk: `/desk/team` with its proposals and latest frames, and what an owner sets.

The staff sees each team, and changes only its own. Frames are shown without their content.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.db.models import Case, Prefetch, When
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse
from django.utils.text import capfirst

from accounts.audit_log import record_reading
from accounts.models import User
from accounts.pages import user_form, user_page
from gateway.models import FrameRecord, Proposal, TeamAgent, TeamPolicy, Vote
from gateway.models.team import HOUR_S, MAX_SESSION_HOURS, RULES
from gateway.service.registry import Member, find_member, load_members
from gateway.service.seat import read_role
from gateway.service.team_rules import (
    PEERS,
    VOTERS,
    WANTED_NAME,
    BadPolicy,
    change_agent,
    change_policy,
    get_policy,
)
from gateway.wire.frame_types import is_agent_name
from kit.clock import db_now, iso
from kit.columns import make_bounded_field, make_form_field
from kit.filters import page_of
from kit.list_fields import NameLines

THRESHOLDS = [
    (TeamPolicy.Threshold.SIMPLE, "Simple: more than half of the voters"),
    (TeamPolicy.Threshold.SUPERMAJORITY, "Supermajority: two thirds of the voters"),
    (TeamPolicy.Threshold.UNANIMOUS, "Unanimous: all voters"),
]
PROPOSALS_ON_A_PAGE = 10
FRAMES_SHOWN = 50
MAX_VOTES_SHOWN = 200
VOTES = ("approve", "reject", "abstain")
GOOD_STATES = (Proposal.State.APPROVED,)
BAD_STATES = (Proposal.State.REJECTED, Proposal.State.BLOCKED)


class TeamRulesForm(forms.ModelForm):  # type: ignore[type-arg]
    """The rules of a team. `session_hours`: the column `session_ttl_s` in hours."""

    members = make_form_field(TeamPolicy, "members", NameLines, rule=VOTERS)
    threshold = make_form_field(
        TeamPolicy, "threshold", forms.ChoiceField, choices=THRESHOLDS, widget=forms.RadioSelect
    )
    session_hours = forms.IntegerField(
        label="Hours until a session expires",
        required=False,
        min_value=1,
        max_value=MAX_SESSION_HOURS,
        help_text="Counted from its last entry. Empty: it never expires.",
    )

    field_order = ("members", "threshold", "breaks_ties", "steward")

    class Meta:
        model = TeamPolicy
        fields = tuple(name for name in RULES if name != "session_ttl_s")
        formfield_callback = make_bounded_field

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        ttl_s = self.instance.session_ttl_s
        self.initial["session_hours"] = -(-ttl_s // HOUR_S) if ttl_s else None

    def clean_steward(self) -> str:
        """A name, or nothing."""
        name: str = self.cleaned_data["steward"]
        if name and not is_agent_name(name):
            raise forms.ValidationError(f"{name}: {WANTED_NAME}.")
        return name

    def choices(self) -> dict[str, Any]:
        """The values of the form as columns; the time of sessions only where another one was typed."""
        chosen = {name: self.cleaned_data[name] for name in self.Meta.fields}
        if "session_hours" in self.changed_data:
            hours = self.cleaned_data["session_hours"]
            chosen["session_ttl_s"] = hours * HOUR_S if hours else None
        return chosen


class TeamAgentForm(forms.ModelForm):  # type: ignore[type-arg]
    """One agent of a team. The lists of peers count where their switch is on."""

    limits_sending = forms.BooleanField(label="May send to these agents only", required=False)
    may_send_to = NameLines(
        rule=PEERS, label="Sends to", required=False, help_text="One name on a line. None: it sends to no agent."
    )
    limits_hearing = forms.BooleanField(label="Takes messages of these agents only", required=False)
    may_hear_from = NameLines(
        rule=PEERS, label="Takes messages of", required=False, help_text="One name on a line. None: of no agent."
    )

    class Meta:
        model = TeamAgent
        fields = ("role", "is_active", "may_send_to", "may_hear_from")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["limits_sending"] = self.instance.may_send_to is not None
        self.initial["limits_hearing"] = self.instance.may_hear_from is not None

    def clean_role(self) -> str:
        """A role as discovery shows it; the other spelling is taken, too."""
        role = read_role(self.cleaned_data["role"])
        if role is None:
            raise forms.ValidationError(f"{capfirst(WANTED_NAME)}.")
        return role

    def choices(self) -> dict[str, Any]:
        """The values of the form as the columns of the row."""
        chosen = self.cleaned_data
        return {
            "role": chosen["role"],
            "is_active": chosen["is_active"],
            "may_send_to": chosen["may_send_to"] if chosen["limits_sending"] else None,
            "may_hear_from": chosen["may_hear_from"] if chosen["limits_hearing"] else None,
        }


@user_form
def rules(request: HttpRequest, owner: User) -> HttpResponse:
    """The rules of the visitor's team."""
    form = TeamRulesForm(request.POST if request.method == "POST" else None, instance=get_policy(owner.pk))
    if request.method == "POST" and form.is_valid():
        try:
            change_policy(owner.pk, form.choices())
        except BadPolicy as bad:
            form.add_error("steward", f"{str(bad).capitalize()}.")
        else:
            messages.success(request, "The rules are saved.")
            return HttpResponseRedirect(reverse("desk-team"))
    return render(request, "gateway/rules.html", {"form": form}, status=400 if form.is_bound else 200)


@user_form
def agent(request: HttpRequest, owner: User, agent_name: str) -> HttpResponse:
    """One agent of the visitor's team."""
    member = find_member(owner.pk, agent_name)
    if member is None:
        raise Http404
    named: dict[str, Any] = {"owner": owner, "name": member.name}
    row = TeamAgent.objects.filter(**named).first() or TeamAgent(**named)
    form = TeamAgentForm(request.POST if request.method == "POST" else None, instance=row)
    if request.method == "POST" and form.is_valid():
        # Not the whole row: the agent's connection writes its status meanwhile.
        kept, _ = TeamAgent.objects.get_or_create(**named)
        change_agent(kept, form.choices())
        messages.success(request, f"{member.name} is saved.")
        return HttpResponseRedirect(reverse("desk-team"))
    context = {"form": form, "member": member}
    return render(request, "gateway/agent.html", context, status=400 if form.is_bound else 200)


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """A proposal with the votes that count, by what was voted. `left_ms`: until its deadline, while it is open."""

    proposal: Proposal
    tally: Sequence[tuple[str, int]]
    missing: Sequence[str]
    left_ms: int | None

    @property
    def is_open(self) -> bool:
        """True if it is not decided."""
        return self.left_ms is not None

    @property
    def until(self) -> str:
        """The deadline of the proposal, in the form that scripts read."""
        return iso(self.proposal.deadline)

    @property
    def mark(self) -> str:
        """The class of the badge of its state."""
        if self.proposal.state in GOOD_STATES:
            return "good"
        return "bad" if self.proposal.state in BAD_STATES else ""


@user_page
def team(request: HttpRequest, visitor: User) -> HttpResponse:
    """The page; its script asks for it again every few seconds."""
    owner = get_team_owner(request, visitor)
    members = load_members(owner.pk)
    proposals = _proposals(owner)
    open_first = Case(When(state__in=Proposal.OPEN, then=0), default=1)
    ordered = proposals.order_by(open_first, "-created_at", "-pk")
    page = page_of(request, ordered, PROPOSALS_ON_A_PAGE, "proposals")
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


@user_page
def proposal(request: HttpRequest, visitor: User, proposal_id: int) -> HttpResponse:
    """The page of one proposal: its text, all votes, also late and replaced ones, and the decision."""
    owner = get_team_owner(request, visitor)
    found = _proposals(owner).filter(pk=proposal_id).first()
    if found is None:
        raise Http404
    votes = list(found.votes.order_by("-voted_at", "-pk")[:MAX_VOTES_SHOWN])
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
    record_reading(visitor, User, "the team's pages", found)
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
    path("desk/team/rules", rules, name="desk-team-rules"),
    path("desk/team/agents/<slug:agent_name>", agent, name="desk-team-agent"),
    path("desk/team/proposals/<int:proposal_id>", proposal, name="desk-team-proposal"),
]
