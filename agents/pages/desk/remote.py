"""Pages and forms to publish a remote A2A server as an agent, and to move it to another address."""

from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from accounts.models import User
from accounts.pages import owner_form
from accounts.quotas import QuotaExceeded
from accounts.sealing import SecretUnreadable
from agents.core import directory
from agents.core.card_settings import EDITABLE
from agents.links.remote.approval import CARD_DECISIONS, NotWaiting, compare_with_approved, find_changed_card
from agents.links.remote.card import MAX_CREDENTIALS_CHARS, NO_AUTH, Auth, BadAuth, BadCard, ServerCard, make_auth
from agents.links.remote.card_content import MAX_KEYS_CHARS, BadKey, keys_text, read_keys_text
from agents.links.remote.publishing import ServerSettings, find_server, look_again, move, publish_remote
from agents.models import Agent, RemoteServer
from agents.models.remote import MAX_SCHEME_CHARS, MAX_URL_CHARS, SWITCHES
from agents.pages.desk import get_own_agent
from agents.pages.desk.publishing import show_published
from agents.pages.forms import AgentForm
from agents.transcript.pieces import Json
from kit.clock import db_now
from kit.concurrency import CARD_LOOKUPS, take_slot
from kit.names import make_slug


class LocationForm(forms.Form):
    """The address and credentials of a server. Credentials are never sent back to the page."""

    card_url = forms.CharField(
        label="Agent card",
        max_length=MAX_URL_CHARS,
        widget=forms.URLInput(attrs={"placeholder": "https://agents.example.org/weather"}),
        help_text="The URL of its agent card, or one above /.well-known/agent-card.json.",
    )
    auth_scheme = forms.CharField(
        label="Scheme", required=False, max_length=MAX_SCHEME_CHARS, help_text="Such as Bearer. Empty: none."
    )
    credentials = forms.CharField(
        required=False,
        max_length=MAX_CREDENTIALS_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Sealed in the database, sent to the card's host alone, shown never again, not even here.",
    )

    card_keys = forms.CharField(
        label="Pinned keys",
        required=False,
        max_length=MAX_KEYS_CHARS,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        help_text="A public JWK or a JWK Set. One of the keys signs the card, or nothing is asked. Empty: the hub "
        "does not look at signatures.",
    )

    tells_caller = forms.BooleanField(
        label="Tell it who asks",
        required=False,
        help_text="Each request to this server then holds the caller's login and the agent's handle, signed by "
        "the hub, in the header Clawbridge-Caller.",
    )

    requires_task = forms.BooleanField(
        label="Require a task",
        required=False,
        help_text="A question fails when the server answers it with a message instead of a task.",
    )

    typed_auth: Auth = NO_AUTH

    @property
    def switches(self) -> dict[str, bool]:
        """The boolean settings, by column."""
        return {name: self.cleaned_data[name] for name in SWITCHES}

    def clean_card_keys(self) -> list[Json]:
        """Parse the public keys."""
        try:
            return read_keys_text(self.cleaned_data["card_keys"])
        except BadKey as bad:
            raise forms.ValidationError(f"{bad}.") from None

    def clean(self) -> dict[str, Any]:
        """Make an `Auth` of the scheme and the credentials."""
        super().clean()
        cleaned: dict[str, Any] = self.cleaned_data
        try:
            self.typed_auth = make_auth(cleaned.get("auth_scheme", ""), cleaned.get("credentials", ""))
        except BadAuth as bad:
            self.add_error("credentials", f"{bad}.")
        return cleaned


class MovedForm(LocationForm):
    """The address of a published server: its credentials stay unless the owner enters new ones or removes them."""

    KEEP, NEW, NONE = "keep", "new", "none"
    CHOICES: ClassVar[list[tuple[str, str]]] = [
        (KEEP, "As they are"),
        (NEW, "New ones, as below"),
        (NONE, "None"),
    ]

    auth = forms.ChoiceField(label="Which credentials", choices=CHOICES, initial=KEEP, widget=forms.RadioSelect)

    def clean(self) -> dict[str, Any]:
        """Check that credentials are entered if, and only if, the owner chose new ones."""
        cleaned = super().clean()
        is_typed, is_chosen = bool(self.typed_auth.scheme), cleaned.get("auth") == self.NEW
        if is_chosen and not is_typed and not self.errors:
            self.add_error("credentials", "Want a scheme and credentials.")
        if is_typed and not is_chosen:
            self.add_error("auth", "There are new ones below: choose them, or empty the fields.")
        return cleaned

    @property
    def wanted_auth(self) -> Auth | None:
        """The chosen credentials; None: the present credentials stay."""
        return {self.KEEP: None, self.NONE: NO_AUTH}.get(self.cleaned_data["auth"], self.typed_auth)


class NewRemoteForm(AgentForm):
    """The settings of the agent that is published for a remote server."""

    slug = forms.CharField(
        required=False,
        max_length=64,
        help_text="The handle is your login, a slash and this, for good. Empty: as the card's name.",
    )


@owner_form
def publish(request: HttpRequest, owner: User) -> HttpResponse:
    """Publish a remote server as an agent; the action `check` shows the card, and fills empty fields from it."""
    if request.method != "POST":
        return _new_page(request, LocationForm(), NewRemoteForm(initial={"status": Agent.Status.PUBLISHED}))
    take_slot(request, CARD_LOOKUPS, owner.pk)
    place, form = LocationForm(request.POST), NewRemoteForm(request.POST)
    found = _find(place)
    card = found.card if found else None
    if request.POST.get("action") == "check":
        form = NewRemoteForm(initial=_filled_in(request, card))
        return _new_page(request, place, form, card=card, status=200 if card else 400)
    if found is None or not form.is_valid():
        return _new_page(request, place, form, card=card, status=400)
    try:
        made = publish_remote(owner, found, **form.settings(), slug=form.cleaned_data["slug"] or None)
    except (directory.HandleTaken, directory.BadSlug) as refused:
        form.add_error("slug", f"{refused}.")
        return _new_page(request, place, form, card=card, status=409)
    except QuotaExceeded as over:
        form.add_error(None, f"{over}.")
        return _new_page(request, place, form, card=card, status=429)
    return show_published(request, made)


@owner_form
def server(request: HttpRequest, owner: User, agent_id: int) -> HttpResponse:
    """The address and state of a remote agent's server; a POST fetches the card again, or moves the server."""
    agent = get_own_agent(agent_id, owner)
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
    """The form with the present settings of a server."""
    now = {"card_url": row.card_url, "card_keys": keys_text(row.card_keys), "auth": MovedForm.KEEP}
    return MovedForm(initial={**now, **{name: getattr(row, name) for name in SWITCHES}})


def _find(place: LocationForm) -> ServerSettings | None:
    """Fetch the card of the server that the owner entered; on failure adds an error to the form, returns None."""
    if not place.is_valid():
        return None
    try:
        typed = place.cleaned_data
        return find_server(typed["card_url"], place.typed_auth, typed["card_keys"], place.switches)
    except BadCard as bad:
        place.add_error("card_url", f"{bad}.")
        return None


def _move(row: RemoteServer, form: MovedForm, *, keeps: bool) -> ServerCard | None:
    """Fetch the card that the form names; unless `keeps`, the hub calls the server by this card from now on."""
    try:
        typed = form.cleaned_data
        wanted = look_again(row, typed["card_url"], form.wanted_auth, typed["card_keys"], form.switches)
    except BadCard as bad:
        form.add_error("card_url", f"{bad}.")
        return None
    except (BadAuth, SecretUnreadable) as bad:
        form.add_error("auth", f"{bad}.")
        return None
    if not keeps:
        move(row, wanted)
    elif wanted.card.url == row.card_url:
        compare_with_approved(row.pk, wanted.card)
    row.refresh_from_db()
    return wanted.card


def _filled_in(request: HttpRequest, card: ServerCard | None) -> dict[str, Any]:
    """The entered values; empty fields get the value of the card."""
    names = (*EDITABLE, "slug", "allowed_logins", "caller_budgets")
    typed: dict[str, Any] = {name: request.POST.get(name, "") for name in names}
    typed |= {name: name in request.POST for name in ("isolated", "caller_approvals", "caller_sharing")}
    if card is not None:
        said = {"name": card.name, "description": card.description, "slug": make_slug(card.name)}
        typed |= {name: text for name, text in said.items() if not typed[name].strip()}
    return typed


def _new_page(
    request: HttpRequest, place: BaseForm, form: BaseForm, *, card: ServerCard | None = None, status: int = 200
) -> HttpResponse:
    return render(request, "desk/remote.html", {"place": place, "form": form, "card": card}, status=status)


def _page(
    request: HttpRequest,
    agent: Agent,
    row: RemoteServer,
    form: BaseForm,
    *,
    card: ServerCard | None = None,
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
