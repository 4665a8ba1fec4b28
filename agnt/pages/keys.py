"""`/desk/network/keys`: the API keys of a network, made and shown once, with their usage; and each by itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.gzip import gzip_page

from accounts.models import Credential, User
from accounts.pages import user_form
from accounts.quotas import QuotaExceeded
from agents.core.figures import window_of
from agents.pages.desk.charts import amount_chart
from agnt.models import ApiKey
from agnt.pages import ON_A_PAGE
from agnt.service.figures import load_calls, load_days
from agnt.service.key_checks import DAILY_CALLS
from agnt.service.keys import (
    OVERLAP,
    SENDERS,
    MintedKey,
    change_key,
    list_keys,
    mint_key,
    revoke_key,
    rotate_secret,
)
from kit.clock import approximate_now, db_now
from kit.columns import make_form_field
from kit.filters import page_of
from kit.list_fields import NameLines

USAGE_DAYS = 7
MAX_DAYS = 3650
TIERS = [
    (tier, f"{tier.label}: {DAILY_CALLS[tier]:,} envelopes a day, {means}")
    for tier, means in (
        (ApiKey.Tier.FREE, "no bookings"),
        (ApiKey.Tier.PRO, "with bookings"),
        (ApiKey.Tier.ENTERPRISE, "with bookings"),
    )
]
SCOPES = [
    (ApiKey.Scope.QUERY, "Query: look venues up and search them"),
    (ApiKey.Scope.BOOKING, "Booking: confirm bookings, too"),
    (ApiKey.Scope.FULL, "Full: everything that a key can do"),
]
OVERLAPS = {"300": "5 minutes", "3600": "1 hour", "86400": "1 day", "604800": "7 days", "2592000": "30 days"}


class RightsForm(forms.ModelForm):  # type: ignore[type-arg]
    """The rights of a key, and its customer; the admin has the same form without the customer."""

    tier = forms.ChoiceField(label="Tier", choices=TIERS, widget=forms.RadioSelect, initial=ApiKey.Tier.FREE)
    scope = forms.ChoiceField(label="Scope", choices=SCOPES, widget=forms.RadioSelect, initial=ApiKey.Scope.QUERY)
    customer = forms.CharField(
        label="Customer",
        max_length=100,
        required=False,
        help_text="Who is invoiced. Keys of one customer share an invoice. Empty: the key is its own customer.",
    )
    senders = make_form_field(ApiKey, "senders", NameLines, rule=SENDERS)

    class Meta:
        model = ApiKey
        fields = ("tier", "scope", "customer", "senders")


class NewKeyForm(RightsForm):
    """A new key."""

    name = forms.CharField(label="Name", max_length=100, help_text="For you, to recognise it by.")
    days = forms.IntegerField(
        label="Days until it expires",
        required=False,
        min_value=1,
        max_value=MAX_DAYS,
        help_text="Empty: it works until you revoke it.",
    )

    def mint(self, owner: User, user_agent: str) -> MintedKey:
        """Make the key.

        Raises:
            QuotaExceeded: the owner holds as many tokens as one may.
        """
        chosen = dict(self.cleaned_data)
        days = chosen.pop("days")
        lifetime = timedelta(days=days) if days else None
        return mint_key(owner, **chosen, lifetime=lifetime, source=Credential.Source.MINT, user_agent=user_agent)


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key with the number of envelopes that came with the key today (UTC)."""

    key: ApiKey
    used: int

    @property
    def limit(self) -> int:
        """The number of calls that the key's tier allows on a day."""
        return DAILY_CALLS[self.key.tier]

    @property
    def is_own_customer(self) -> bool:
        """True if the key is its own customer."""
        return self.key.customer == f"key-{self.key.public_id}"

    @property
    def state(self) -> str:
        """`live`, `revoked` or `expired`."""
        credential = self.key.credential
        return "revoked" if credential.revoked_at else "live" if credential.is_live else "expired"


@gzip_page
@user_form
@sensitive_variables("minted")
def keys(request: HttpRequest, owner: User) -> HttpResponse:
    """The keys; a POST makes one and shows its text and its secret, this once."""
    form = NewKeyForm(request.POST if request.method == "POST" else None)
    minted: MintedKey | None = None
    status = 400 if form.is_bound else 200
    if form.is_bound and form.is_valid():
        try:
            minted, status = form.mint(owner, request.headers.get("User-Agent", "")), 200
        except QuotaExceeded as over:
            form.add_error(None, f"{capfirst(str(over))}.")
            status = 429
    with_ended = request.GET.get("ended") == "1"
    page = page_of(request, list_keys(owner, with_ended=with_ended).order_by("-created_at", "-pk"), ON_A_PAGE)
    context = {
        "rows": load_key_rows(page),
        "page": page,
        "with_ended": with_ended,
        "form": NewKeyForm() if minted else form,
        "minted": minted,
    }
    return render(request, "agnt/keys.html", context, status=status)


@gzip_page
@user_form
@sensitive_variables("secret")
def key(request: HttpRequest, owner: User, api_key_id: UUID) -> HttpResponse:
    """One key; a POST changes its rights, revokes it, or gives it a new secret and shows that, this once."""
    own = get_object_or_404(list_keys(owner, with_ended=True), public_id=api_key_id)
    [row] = load_key_rows([own])
    action = request.POST.get("action", "")
    secret = ""
    if action == "revoke":
        revoke_key(own)
        messages.success(request, f"{own.credential.name} is revoked. What used it is cut off.")
        return HttpResponseRedirect(reverse("desk-network-keys"))
    if action == "rotate" and row.state == "live":
        overlap = request.POST.get("overlap", "")
        secret = rotate_secret(own, overlap=timedelta(seconds=int(overlap)) if overlap in OVERLAPS else OVERLAP)
        own.refresh_from_db()
    form = RightsForm(request.POST if action == "change" else None, initial=_rights_of(row))
    if form.is_bound and row.state == "live" and form.is_valid():
        change_key(own, **form.cleaned_data)
        messages.success(request, f"{own.credential.name} is changed. It counts from the next envelope on.")
        return HttpResponseRedirect(reverse("desk-network-key", args=[own.public_id]))
    window = window_of(db_now(), USAGE_DAYS, str(UTC))
    days = load_days(owner, window.days[0], window.days[-1], key=own)
    calls = [one.calls for one in days]
    context = {
        "row": row,
        "own": own,
        "form": form,
        "secret": secret,
        "previous_is_live": bool(own.previous_until and own.previous_until > approximate_now()),
        "overlaps": OVERLAPS,
        "days": days,
        "chart": amount_chart(window.days, calls, kind="envelopes", about="Envelopes.", describe="{:,}".format),
    }
    return render(request, "agnt/key.html", context, status=200 if secret or request.method != "POST" else 400)


def _rights_of(row: KeyRow) -> dict[str, Any]:
    """The first values of the form."""
    key = row.key
    customer = "" if row.is_own_customer else key.customer
    return {"tier": key.tier, "scope": key.scope, "customer": customer, "senders": key.senders}


def load_key_rows(keys: Iterable[ApiKey]) -> list[KeyRow]:
    """The keys, each with the number of envelopes that came with the key today (UTC)."""
    listed = list(keys)
    used = load_calls(listed, db_now().date())
    return [KeyRow(one, used.get(one.pk, 0)) for one in listed]
