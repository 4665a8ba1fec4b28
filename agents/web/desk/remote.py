"""Publishing a remote A2A server, and moving one: forms over `agents.links.remote.publishing`."""

from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User
from accounts.quotas import QuotaExceeded
from agents.core import publishing
from agents.core.session_rows import slug_of
from agents.links.remote.access import BadAuth
from agents.links.remote.approval import CARD_DECISIONS, NotWaiting, compare_with_approved, find_changed_card
from agents.links.remote.card import BadCard, Card
from agents.links.remote.publishing import ServerSettings, find_server, look_again, move, publish_remote
from agents.links.remote.signatures import keys_text
from agents.models import Agent, RemoteServer
from agents.web.desk.owner_access import for_owner, own_agent
from agents.web.desk.publishing import PAGE, say
from agents.web.desk.remote_forms import MovedForm, PlaceForm, new_remote_form
from agents.web.forms import EDITABLE
from kit.clock import db_now
from kit.concurrency import CARD_LOOKUPS, take_slot
from kit.sealing import Unreadable


@never_cache
@require_http_methods(PAGE)
@for_owner
def publish(request: HttpRequest, owner: User) -> HttpResponse:
    """Make an agent of a remote server; the action `check` shows its card, and fills in what is empty."""
    form_class = new_remote_form()
    if request.method != "POST":
        return _new_page(request, PlaceForm(), form_class(initial={"status": Agent.Status.PUBLISHED}))
    take_slot(request, CARD_LOOKUPS, owner.pk)
    place, form = PlaceForm(request.POST), form_class(request.POST)
    found = _find(place)
    card = found.card if found else None
    if request.POST.get("action") == "check":
        form = form_class(initial=_filled_in(request, card))
        return _new_page(request, place, form, card=card, status=200 if card else 400)
    if found is None or not form.is_valid():
        return _new_page(request, place, form, card=card, status=400)
    chosen = form.cleaned_data
    details = {field: chosen[field] for field in EDITABLE}
    try:
        made = publish_remote(
            owner,
            found,
            details,
            slug=chosen["slug"] or None,
            allowed=chosen["allowed_logins"],
            budgets=chosen["caller_budgets"],
        )
    except (publishing.Taken, publishing.BadSlug) as refused:
        form.add_error("slug", f"{refused}.")
        return _new_page(request, place, form, card=card, status=409)
    except QuotaExceeded as over:
        form.add_error(None, f"{over}.")
        return _new_page(request, place, form, card=card, status=429)
    say(request, made.agent, "is back, with its log" if made.restored else "is there")
    return HttpResponseRedirect(reverse("desk"))


@never_cache
@require_http_methods(PAGE)
@for_owner
def server(request: HttpRequest, owner: User, agent_id: int) -> HttpResponse:
    """Where a remote agent's server is and how it does; look at its card again, or move it."""
    agent = own_agent(agent_id, owner)
    row: RemoteServer | None = RemoteServer.objects.filter(session_id=agent.session_id).first()
    if row is None:
        raise Http404
    if request.method != "POST":
        return _page(request, agent, row, _unchanged(row))
    if request.POST.get("action") in CARD_DECISIONS:
        return _decided(request, agent, row)
    take_slot(request, CARD_LOOKUPS, owner.pk)
    form = MovedForm(request.POST)
    card = _move(row, form, keeps=request.POST.get("action") == "check") if form.is_valid() else None
    if card is None or request.POST.get("action") == "check":
        return _page(request, agent, row, form, card=card, status=200 if card else 400)
    if find_changed_card(row):
        messages.warning(request, f"@{agent.handle} is saved. Its card changed: approve it, or keep the old one.")
        return HttpResponseRedirect(request.path)
    messages.success(request, f"The hub now calls @{agent.handle} as the card of {card.name} says.")
    return HttpResponseRedirect(reverse("desk-agent", args=[agent.pk]))


def _decided(request: HttpRequest, agent: Agent, row: RemoteServer) -> HttpResponse:
    """Approve the changed card that the owner saw, or keep the old one."""
    decision = request.POST["action"]
    try:
        CARD_DECISIONS[decision](row, request.POST.get("digest", ""))
    except NotWaiting:
        messages.error(request, "The card changed once more, or was decided about already: nothing is done.")
    else:
        which = "changed" if decision == "approve" else "old"
        messages.success(request, f"The hub now calls @{agent.handle} as the {which} card says.")
    return HttpResponseRedirect(request.path)


def _unchanged(row: RemoteServer) -> MovedForm:
    """The form of a server as it is."""
    now = {"card_url": row.card_url, "card_keys": keys_text(row.card_keys), "tells_caller": row.tells_caller}
    return MovedForm(initial={**now, "auth": MovedForm.KEEP})


def _find(place: PlaceForm) -> ServerSettings | None:
    """The server that was typed, with its card; or an error beside it."""
    if not place.is_valid():
        return None
    try:
        typed = place.cleaned_data
        tells_caller = typed["tells_caller"]
        return find_server(typed["card_url"], place.typed_auth, typed["card_keys"], tells_caller=tells_caller)
    except BadCard as bad:
        place.add_error("card_url", f"{bad}.")
        return None


def _move(row: RemoteServer, form: MovedForm, *, keeps: bool) -> Card | None:
    """The card as the form wants it; call it from now on, unless the server stays where it is."""
    try:
        typed = form.cleaned_data
        wanted = look_again(row, typed["card_url"], form.wanted_auth, typed["card_keys"], typed["tells_caller"])
    except BadCard as bad:
        form.add_error("card_url", f"{bad}.")
        return None
    except (BadAuth, Unreadable) as bad:
        form.add_error("auth", f"{bad}.")
        return None
    if not keeps:
        move(row, wanted)
    elif wanted.card.url == row.card_url:
        compare_with_approved(row.pk, wanted.card)
    row.refresh_from_db()
    return wanted.card


def _filled_in(request: HttpRequest, card: Card | None) -> dict[str, Any]:
    """What was typed, and where nothing was, what the card says."""
    names = (*EDITABLE, "slug", "allowed_logins", "caller_budgets")
    typed: dict[str, Any] = {name: request.POST.get(name, "") for name in names}
    typed |= {name: name in request.POST for name in ("isolated", "caller_approvals")}
    typed["input_modes"] = request.POST.getlist("input_modes")
    if card is not None:
        said = {"name": card.name, "description": card.description, "slug": slug_of(card.name)}
        typed |= {name: text for name, text in said.items() if not typed[name].strip()}
    return typed


def _new_page(
    request: HttpRequest, place: BaseForm, form: BaseForm, *, card: Card | None = None, status: int = 200
) -> HttpResponse:
    return render(request, "desk/remote.html", {"place": place, "form": form, "card": card}, status=status)


def _page(
    request: HttpRequest,
    agent: Agent,
    row: RemoteServer,
    form: BaseForm,
    *,
    card: Card | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "agent": agent,
        "server": row,
        "breaker": row.breaker(db_now()),
        "form": form,
        "card": card,
        "changed": find_changed_card(row),
    }
    return render(request, "desk/remote_server.html", context, status=status)
