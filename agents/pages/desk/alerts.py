"""`/desk/alerts`: the rules for an owner's alerts, the mail address for them, and the alerts themselves."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from accounts.errors import TooFast
from accounts.models import User
from accounts.pages import owner_form
from accounts.throttle import CONFIRMATIONS_PER_DAY, CONFIRMATIONS_PER_HOUR
from agents import settings
from agents.core.alert_rules import HIGHEST, load_rules, set_rules
from agents.core.alert_texts import describe_alert
from agents.core.mail import confirm_address, set_address
from agents.models import Alert, AlertAddress
from agents.models.alert import MAX_EMAIL_CHARS, AlertKind, AlertQuerySet

SHOWN = 20
MAX_TOKEN_CHARS = 1000
DEFAULTS = {AlertKind.OFFLINE: 15, AlertKind.BUDGET: 80, AlertKind.FAILURES: 50, AlertKind.NEW_FAILURE: 1}
TOO_MANY_MAILS = (
    f"To confirm addresses, the hub mails at most {CONFIRMATIONS_PER_HOUR} links an hour and"
    f" {CONFIRMATIONS_PER_DAY} a day. Use the last link, or try again in {{minutes}} min. Nothing was saved."
)


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One alert in a list. `said`: a sentence without its full stop."""

    said: str
    agent_id: int
    since: datetime
    ended_at: datetime | None
    failure_group_id: int | None = None


def _number(label: str, kind: AlertKind) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=1,
        max_value=HIGHEST[kind],
        initial=DEFAULTS[kind],
        widget=forms.NumberInput,
    )


class AlertsForm(forms.Form):
    """A switch and a threshold for each kind of alert, and the mail address."""

    offline = forms.BooleanField(label="An agent is offline", required=False)
    offline_threshold = _number("Minutes", AlertKind.OFFLINE)
    budget = forms.BooleanField(label="Its daily budget is nearly used", required=False)
    budget_threshold = _number("Percent of the budget", AlertKind.BUDGET)
    failures = forms.BooleanField(label="Many of its answers fail", required=False)
    failures_threshold = _number("Percent of an hour’s questions", AlertKind.FAILURES)
    new_failure = forms.BooleanField(label="It fails in a new way", required=False)
    new_failure_threshold = _number("Failures of the kind", AlertKind.NEW_FAILURE)
    email = forms.EmailField(label="Mail address", required=False, max_length=MAX_EMAIL_CHARS)

    def clean_email(self) -> str:
        """Refuse control characters, which Django accepts between quotes but a mail's header cannot contain."""
        email: str = self.cleaned_data["email"]
        if not email.isprintable():
            raise forms.ValidationError("Want an address without control characters.")
        return email

    def clean(self) -> dict[str, Any]:
        """Require a threshold for each kind of alert that is switched on."""
        super().clean()
        cleaned: dict[str, Any] = self.cleaned_data
        for kind in AlertKind:
            if cleaned.get(kind) and cleaned.get(f"{kind}_threshold") is None and not self.has_error(_field(kind)):
                self.add_error(_field(kind), "Want a number.")
        return cleaned

    @property
    def kinds(self) -> list[tuple[forms.BoundField, forms.BoundField, str]]:
        """The switch, the threshold and a description of each kind of alert."""
        return [(self[kind], self[_field(kind)], MEANS[kind]) for kind in AlertKind]

    def rules(self) -> Mapping[AlertKind, int]:
        """The thresholds of the kinds of alert that are switched on."""
        chosen = self.cleaned_data
        return {kind: chosen[_field(kind)] for kind in AlertKind if chosen[kind]}


MEANS = {
    AlertKind.OFFLINE: "Begins when the agent has been offline for this long. Ends when it is back.",
    AlertKind.BUDGET: "Begins when this part of it is used. Ends at midnight UTC, or with a higher budget.",
    AlertKind.FAILURES: "Begins when this part of at least 5 questions of the last hour failed. Ends below half of"
    " it. Refused questions do not count.",
    AlertKind.NEW_FAILURE: "Begins when a kind of failure is new, or is back after you resolved it, and occurred"
    " this often within an hour. Ends when you resolve or ignore it.",
}


@owner_form
def alerts(request: HttpRequest, owner: User) -> HttpResponse:
    """The form and the lists of alerts. `?confirm=` shows a button whose POST confirms the mail address."""
    token = (request.POST or request.GET).get("confirm", "")[:MAX_TOKEN_CHARS]
    if request.method != "POST":
        return _page(request, owner, AlertsForm(initial=_initial(owner)), token=token)
    if token:
        return _confirm(request, owner, token)
    form = AlertsForm(request.POST)
    if not form.is_valid():
        return _page(request, owner, form, status=400)
    try:
        with transaction.atomic():
            _save(owner, form)
    except TooFast as fast:
        form.add_error("email", TOO_MANY_MAILS.format(minutes=math.ceil(fast.retry_in_s / 60)))
        return _page(request, owner, form, status=429)
    messages.success(request, "Your alerts are saved.")
    return HttpResponseRedirect(reverse("desk-alerts"))


def open_alerts(owner: User) -> AlertQuerySet:
    """The owner's alerts that have not ended, newest first."""
    return _raised(owner).open().order_by("-raised_at", "-pk")


def show_alerts(found: Iterable[Alert]) -> list[AlertRow]:
    """The rows of alerts whose agents are loaded."""
    return [
        AlertRow(describe_alert(one), one.agent_id, one.since, one.ended_at, one.failure_group_id) for one in found
    ]


def _save(owner: User, form: AlertsForm) -> None:
    """Write the rules and the address.

    Raises:
        TooFast: the caller must roll back the transaction.
    """
    set_rules(owner, form.rules())
    if settings.SENDS_MAIL:
        set_address(owner, form.cleaned_data["email"])


def _confirm(request: HttpRequest, owner: User, token: str) -> HttpResponse:
    if confirm_address(owner, token):
        messages.success(request, "The address is confirmed: alerts are mailed to it.")
    else:
        messages.error(request, "This link is more than a day old, or of another address. Save the address again.")
    return HttpResponseRedirect(reverse("desk-alerts"))


def _initial(owner: User) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, threshold in load_rules(owner).items():
        found |= {kind: True, _field(kind): threshold}
    address = AlertAddress.objects.filter(owner=owner).first()
    return {**found, "email": address.email if address else ""}


def _raised(owner: User) -> AlertQuerySet:
    raised: AlertQuerySet = Alert.objects.raised().filter(agent__owner=owner, agent__deleted_at=None)
    return raised.select_related("agent", "failure_group")


def _page(
    request: HttpRequest, owner: User, form: AlertsForm, *, token: str = "", status: int = 200
) -> HttpResponse:
    past = _raised(owner).exclude(ended_at=None).order_by("-ended_at", "-pk")
    context = {
        "form": form,
        "token": token,
        "sends_mail": settings.SENDS_MAIL,
        "address": AlertAddress.objects.filter(owner=owner).exclude(email="").first(),
        "open": show_alerts(open_alerts(owner)[:SHOWN]),
        "past": show_alerts(past[:SHOWN]),
    }
    return render(request, "desk/alerts.html", context, status=status)


def _field(kind: AlertKind) -> str:
    return f"{kind}_threshold"
