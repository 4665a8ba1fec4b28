"""`/desk/team/rules` and `/desk/team/agents/{name}`: what an owner sets for a team."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User
from agents.web.desk import require_owner
from gateway.members import find_member
from gateway.models import TeamAgent
from gateway.team_changes import change_agent, get_policy
from gateway.web.forms import RulesForm, TeamAgentForm

PAGE = ["GET", "HEAD", "POST"]


@never_cache
@require_http_methods(PAGE)
@require_owner
def rules(request: HttpRequest, owner: User) -> HttpResponse:
    """The rules of the visitor's team."""
    policy = get_policy(owner.pk)
    form = RulesForm(request.POST if request.method == "POST" else None, instance=policy)
    if request.method == "POST" and form.is_valid():
        form.save_rules()
        messages.success(request, "The rules are saved.")
        return HttpResponseRedirect(reverse("team"))
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
        enrolled, _ = TeamAgent.objects.get_or_create(**named)
        change_agent(enrolled, form.choices())
        messages.success(request, f"{member.name} is saved.")
        return HttpResponseRedirect(reverse("team"))
    context = {"form": form, "member": member}
    return render(request, "gateway/agent.html", context, status=400 if form.is_bound else 200)
