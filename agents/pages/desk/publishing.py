"""Pages to publish, change and delete an agent, with forms over `agents.core.directory`."""

from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from accounts.models import User
from accounts.pages import owner_form, owner_read
from accounts.quotas import QuotaExceeded
from agents.core import directory, halt_rules
from agents.core.agent_moves import NotMovable
from agents.core.halt_rules import HaltSubject
from agents.models import Agent, Halt, Session
from agents.models.session import is_online
from agents.pages.desk import get_own_agent
from agents.pages.forms import PresentAgentForm, make_new_agent_form
from kit.ids import read_uuid
from kit.names import make_slug

Status = Agent.Status


@owner_form
def publish(request: HttpRequest, owner: User) -> HttpResponse:
    """Publish a session as an agent; `?session=` names the session."""
    session = _wanted_session(request, owner)
    form_class = make_new_agent_form(owner, session)
    if request.method != "POST":
        return _page(request, form_class(initial=_initial_values(session)), session=session)
    form = form_class(request.POST)
    if _is_preview(request):
        return _page(request, form, session=session)
    if not form.is_valid():
        return _page(request, form, session=session, status=400)
    try:
        made = form.publish()
    except directory.HandleTaken as taken:
        form.add_error("slug", f"{taken}.")
        return _page(request, form, session=session, status=409)
    except QuotaExceeded as over:
        form.add_error(None, f"{over}.")
        return _page(request, form, session=session, status=429)
    return show_published(request, made)


@owner_read
def published(request: HttpRequest, owner: User, agent_id: int) -> HttpResponse:
    """The page after publishing, with the next steps: ask the agent, see its page, share its handle."""
    return render(request, "desk/published.html", {"agent": get_own_agent(agent_id, owner)})


@owner_form
def edit(request: HttpRequest, owner: User, agent_id: int) -> HttpResponse:
    """Change an agent; the actions publish, unpublish, halt and resume ignore the other fields of the form."""
    agent = get_own_agent(agent_id, owner)
    action = request.POST.get("action")
    if action in ("publish", "unpublish"):
        status = Status.PUBLISHED if action == "publish" else Status.DRAFT
        return _show_revised(request, directory.revise_agent(agent.pk, {"status": status}))
    if action in ("halt", "resume"):
        return _switch_halt(request, agent, is_off=action == "halt")
    form = PresentAgentForm(request.POST or None, instance=agent)
    if request.method != "POST" or _is_preview(request):
        return _page(request, form, agent=get_own_agent(agent_id, owner))
    if not form.is_valid():
        return _page(request, form, agent=get_own_agent(agent_id, owner), status=400)
    try:
        return _show_revised(request, form.revise())
    except NotMovable as refused:
        form.add_error("session", f"Not moved: {refused}.")
        return _page(request, form, agent=get_own_agent(agent_id, owner), status=409)


@owner_form
def delete(request: HttpRequest, owner: User, agent_id: int) -> HttpResponse:
    """GET asks for confirmation, POST deletes the agent."""
    agent = get_own_agent(agent_id, owner)
    if request.method != "POST":
        return render(request, "desk/delete.html", {"agent": agent})
    agent.soft_delete()
    messages.success(request, f"@{agent.handle} is deleted. Its log is kept: publish it again and it comes back.")
    return HttpResponseRedirect(reverse("desk"))


def _switch_halt(request: HttpRequest, agent: Agent, *, is_off: bool) -> HttpResponse:
    """Halt an agent of the owner, or resume it; a halt that an administrator made stays."""
    if is_off:
        halt_rules.halt_own_agent(agent)
        messages.warning(request, f"{agent} is halted: it cannot be asked, and its connection is closed.")
    else:
        halt_rules.resume_own_agent(agent)
        messages.success(request, f"{agent} goes on, once it has connected again.")
    return HttpResponseRedirect(request.path)


def _show_revised(request: HttpRequest, agent: Agent | None) -> HttpResponse:
    if agent is None:
        messages.error(request, "The agent was deleted meanwhile.")
    else:
        show_saved(request, agent, "is saved")
    return HttpResponseRedirect(reverse("desk"))


def show_saved(request: HttpRequest, agent: Agent, what: str) -> None:
    """Show the owner a message: the result for an agent, and whether callers can ask the agent."""
    if agent.status == Status.PUBLISHED:
        messages.success(request, f"@{agent.handle} {what}, and open to callers.")
    else:
        messages.warning(request, f"@{agent.handle} {what}. It is a draft: it cannot be asked yet.")


def show_published(request: HttpRequest, made: directory.Published) -> HttpResponse:
    """Redirect to the page with the next steps."""
    show_saved(request, made.agent, "is back, with its log" if made.restored else "is there")
    return HttpResponseRedirect(reverse("desk-published", args=[made.agent.pk]))


def _page(
    request: HttpRequest, form: BaseForm, *, agent: Agent | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    halts = list(HaltSubject(Halt.Kind.AGENT, agent=agent).halts) if agent else []
    context = {
        "agent": agent,
        "is_online": agent is not None and is_online(agent.session_id),
        "is_halted": bool(halts),
        "may_resume": not any(one.by_staff for one in halts),
        "form": form,
        "preview": _is_preview(request),
        "description": form["description"].value() or "",
        **more,
    }
    return render(request, "desk/agent.html", context, status=status)


def _is_preview(request: HttpRequest) -> bool:
    return request.POST.get("action") == "preview"


def _wanted_session(request: HttpRequest, owner: User) -> Session | None:
    public_id = read_uuid(request.GET.get("session", ""))
    if public_id is None:
        return None
    found: Session | None = Session.objects.owned_by(owner).filter(public_id=public_id).first()
    return found


def _initial_values(session: Session | None) -> dict[str, Any]:
    """The initial values of the form for a new agent."""
    if session is None:
        return {"status": Status.PUBLISHED}
    slug = make_slug(session.routing_name)
    return {
        "status": Status.PUBLISHED,
        "session": session,
        "name": slug.replace("-", " ").capitalize(),
        "slug": slug,
    }
