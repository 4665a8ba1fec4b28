"""`/desk/team/rules` and `/desk/team/agents/{name}`: what an owner sets for a team, and the forms for it."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User
from agents.web.card_fields import LinesField
from agents.web.desk import require_owner
from gateway.models import TeamAgent, TeamPolicy
from gateway.models.team import HOUR_S, MAX_FRAMES_KEPT_DAYS, MAX_SESSION_HOURS, MOST_PEERS_NAMED, MOST_VOTERS
from gateway.service.seats.enrolment import read_role
from gateway.service.team.members import find_member
from gateway.service.team.team_changes import BadPolicy, change_agent, change_policy, get_policy
from gateway.wire.frame_types import is_agent_name, is_target

PAGE = ["GET", "HEAD", "POST"]
WANT_NAMES = "Want the names of agents, one on a line: small letters, digits and hyphens."
THRESHOLDS = [
    (TeamPolicy.Threshold.SIMPLE, "Simple: more than half of the voters"),
    (TeamPolicy.Threshold.SUPERMAJORITY, "Supermajority: two thirds of the voters"),
    (TeamPolicy.Threshold.UNANIMOUS, "Unanimous: all voters"),
]


class RulesForm(forms.ModelForm):  # type: ignore[type-arg]
    """The rules of a team."""

    members = LinesField(
        label="Voters", help_text=f"The agents that vote on proposals, one on a line; at most {MOST_VOTERS}."
    )
    threshold = forms.ChoiceField(label="Votes that decide", choices=THRESHOLDS, widget=forms.RadioSelect)
    breaks_ties = forms.BooleanField(
        label="An agent breaks ties", required=False, help_text="It is asked when the voters cannot decide."
    )
    steward = forms.CharField(label="Agent that breaks ties", required=False, max_length=64)
    queues_messages = forms.BooleanField(
        label="Keep messages for agents that are offline or busy",
        required=False,
        help_text="Without this, only messages with a ttl wait.",
    )
    stores_told = forms.BooleanField(label="Keep messages that want no response in the transcript", required=False)
    requires_signature = forms.BooleanField(
        label="Require signed frames", required=False, help_text="Frames without a valid signature are refused."
    )
    frames_kept_days = forms.IntegerField(
        label="Days to keep records of frames", min_value=1, max_value=MAX_FRAMES_KEPT_DAYS
    )
    session_hours = forms.IntegerField(
        label="Hours until a session expires",
        required=False,
        min_value=1,
        max_value=MAX_SESSION_HOURS,
        help_text="Counted from its last entry. Empty: it never expires.",
    )

    class Meta:
        model = TeamPolicy
        fields = (
            "members",
            "threshold",
            "breaks_ties",
            "steward",
            "queues_messages",
            "stores_told",
            "requires_signature",
            "frames_kept_days",
        )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        ttl_s = self.instance.session_ttl_s
        self.initial["session_hours"] = -(-ttl_s // HOUR_S) if ttl_s else None

    def clean_members(self) -> list[str]:
        """Names, each once."""
        names = list(dict.fromkeys(self.cleaned_data["members"]))
        if not names or len(names) > MOST_VOTERS or not all(map(is_agent_name, names)):
            raise forms.ValidationError(f"{WANT_NAMES} At least 1, at most {MOST_VOTERS}.")
        return names

    def clean_steward(self) -> str:
        """A name, or nothing."""
        name: str = self.cleaned_data["steward"]
        if name and not is_agent_name(name):
            raise forms.ValidationError("Want the name of an agent.")
        return name

    def choices(self) -> dict[str, Any]:
        """What was chosen, as columns; the time of sessions only where another one was typed."""
        chosen = {name: self.cleaned_data[name] for name in self.Meta.fields}
        if "session_hours" in self.changed_data:
            hours = self.cleaned_data["session_hours"]
            chosen["session_ttl_s"] = hours * HOUR_S if hours else None
        return chosen


class TeamAgentForm(forms.ModelForm):  # type: ignore[type-arg]
    """One agent of a team. The lists of peers count where their switch is on."""

    role = forms.CharField(
        label="Role", max_length=32, help_text="As discovery shows it, such as triad-member or researcher."
    )
    is_active = forms.BooleanField(
        label="Enrolled",
        required=False,
        help_text="An agent that is not enrolled is disconnected, and cannot come back.",
    )
    limits_sending = forms.BooleanField(label="May send to these agents only", required=False)
    may_send_to = LinesField(
        label="Sends to", required=False, help_text="One name on a line. None: it sends to no agent."
    )
    limits_hearing = forms.BooleanField(label="Takes messages of these agents only", required=False)
    may_hear_from = LinesField(
        label="Takes messages of", required=False, help_text="One name on a line. None: of no agent."
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
            raise forms.ValidationError("Want small letters, digits and hyphens.")
        return role

    def clean_may_send_to(self) -> list[str]:
        """Names of agents."""
        return _check_peers(self.cleaned_data["may_send_to"])

    def clean_may_hear_from(self) -> list[str]:
        """Names of agents."""
        return _check_peers(self.cleaned_data["may_hear_from"])

    def choices(self) -> dict[str, Any]:
        """What was chosen, as the columns of the row."""
        chosen = self.cleaned_data
        return {
            "role": chosen["role"],
            "is_active": chosen["is_active"],
            "may_send_to": chosen["may_send_to"] if chosen["limits_sending"] else None,
            "may_hear_from": chosen["may_hear_from"] if chosen["limits_hearing"] else None,
        }


def _check_peers(names: Sequence[str]) -> list[str]:
    """The names, each once.

    Raises:
        ValidationError: one is no name, or there are too many.
    """
    found = list(dict.fromkeys(names))
    if len(found) > MOST_PEERS_NAMED or not all(map(is_target, found)):
        raise forms.ValidationError(f"{WANT_NAMES} At most {MOST_PEERS_NAMED}.")
    return found


@never_cache
@require_http_methods(PAGE)
@require_owner
def rules(request: HttpRequest, owner: User) -> HttpResponse:
    """The rules of the visitor's team."""
    form = RulesForm(request.POST if request.method == "POST" else None, instance=get_policy(owner.pk))
    if request.method == "POST" and form.is_valid():
        try:
            change_policy(owner.pk, form.choices())
        except BadPolicy as bad:
            form.add_error("steward", f"{str(bad).capitalize()}.")
        else:
            messages.success(request, "The rules are saved.")
            return HttpResponseRedirect(reverse("desk-team"))
    return render(request, "gateway/rules.html", {"form": form}, status=400 if form.is_bound else 200)


@never_cache
@require_http_methods(PAGE)
@require_owner
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
