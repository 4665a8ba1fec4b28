"""`/desk/team/rules` and `/desk/team/agents/{name}`: what an owner sets for a team, and the forms for it."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import capfirst

from accounts.models import User
from agents.web.desk import owner_form
from gateway.models import TeamAgent, TeamPolicy
from gateway.models.team import HOUR_S, MAX_SESSION_HOURS, RULES
from gateway.service.seats.seat import read_role
from gateway.service.team.registry import find_member
from gateway.service.team.team_changes import (
    PEERS,
    VOTERS,
    WANTED_NAME,
    BadPolicy,
    change_agent,
    change_policy,
    get_policy,
)
from gateway.wire.frame_types import is_agent_name
from kit.columns import make_bounded_field, make_form_field
from kit.list_fields import NameLines

THRESHOLDS = [
    (TeamPolicy.Threshold.SIMPLE, "Simple: more than half of the voters"),
    (TeamPolicy.Threshold.SUPERMAJORITY, "Supermajority: two thirds of the voters"),
    (TeamPolicy.Threshold.UNANIMOUS, "Unanimous: all voters"),
]


class RulesForm(forms.ModelForm):  # type: ignore[type-arg]
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


@owner_form
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


@owner_form
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
