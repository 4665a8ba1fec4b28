"""A user's webhooks in a browser: subscribe, try, watch deliveries, send them again."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.oauth.pages import signed_in, to_signin
from webhooks import subscription_changes
from webhooks.catalog import ALL_EVENTS, CATALOG, TEST
from webhooks.models import Delivery, Subscription
from webhooks.queues import RETRY_AFTER_S
from webhooks.rest import SubscriptionBody
from webhooks.sending import send_again
from webhooks.settings import get_settings

SHOWN = 30
FARTHEST = 10**18
HOWTO = Path(__file__).resolve().parents[1] / "docs" / "howto" / "receive-webhooks.md"
SECTION = "## Verify\n"
OFFERED = tuple(row for row in CATALOG if row.type != TEST)

OnOwn = Callable[[HttpRequest, Subscription], HttpResponse]


class SubscribeForm:
    """What was typed, checked as the native API does. `errors`: one sentence for each field that is wrong."""

    def __init__(self, given: QueryDict | None = None) -> None:
        given = given if given is not None else QueryDict()
        self.url = given.get("url", "").strip()
        self.events = given.getlist("events")
        self.session_id = given.get("session_id", "").strip()
        self.routing_name = given.get("routing_name", "").strip()
        self.errors: dict[str, str] = {}

    def read(self) -> dict[str, Any] | None:
        """Fields of `Subscription`; None when something is wrong."""
        filters = {"sessionId": self.session_id or None, "routingName": self.routing_name or None}
        body = SubscriptionBody(data={"url": self.url, "events": self.events, "filters": filters})
        if body.is_valid():
            return body.fields_of_row()
        self.errors = dict(_sentences(body.errors))
        return None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest) -> HttpResponse:
    """One's own, and the form that makes another; a POST shows its secret this once."""
    caller = signed_in(request)
    if caller is None:
        return to_signin(request)
    if request.method != "POST":
        return _list(request, caller.user, SubscribeForm())
    form = SubscribeForm(request.POST)
    details = form.read()
    if details is None:
        return _list(request, caller.user, form, status=400)
    try:
        made = subscription_changes.subscribe(caller.user, details)
    except subscription_changes.TooMany as many:
        form.errors["url"] = f"{str(many).capitalize()}: delete one first."
        return _list(request, caller.user, form, status=409)
    return _page(request, made.subscription, secret=made.secret)


def _on_own(act: OnOwn) -> Callable[[HttpRequest, int], HttpResponse]:
    """A view of a webhook of one's own; others' and absent ones are the same 404."""

    def view(request: HttpRequest, webhook_id: int) -> HttpResponse:
        caller = signed_in(request)
        if caller is None:
            return to_signin(request)
        own = Subscription.objects.owned_by(caller.user).filter(pk=webhook_id).first()
        if own is None:
            raise Http404
        return act(request, own)

    return never_cache(view)


def _show(request: HttpRequest, own: Subscription) -> HttpResponse:
    return _page(request, own)


def _show_deliveries(request: HttpRequest, own: Subscription) -> HttpResponse:
    return render(request, "webhooks/deliveries.html", _deliveries(request, own))


def _test(request: HttpRequest, own: Subscription) -> HttpResponse:
    event_id = subscription_changes.send_test(own)
    messages.success(request, f"A test is on its way: {event_id}.")
    return _back(own)


def _roll(request: HttpRequest, own: Subscription) -> HttpResponse:
    made = subscription_changes.roll_secret(own.pk)
    if made is None:
        raise Http404
    return _page(request, made.subscription, secret=made.secret)


def _delete(request: HttpRequest, own: Subscription) -> HttpResponse:
    subscription_changes.unsubscribe(own.pk)
    messages.success(request, "Deleted, with all that waited to be sent.")
    return HttpResponseRedirect(reverse("webhooks-page"))


def _replay(request: HttpRequest, own: Subscription) -> HttpResponse:
    wanted = request.POST.get("delivery", "")
    found = None
    if wanted.isascii() and wanted.isdecimal() and len(wanted) < 19:
        found = Delivery.objects.filter(subscription=own, pk=int(wanted)).first()
    if found is None:
        raise Http404
    is_queued = send_again(found)
    said = "will be sent again, under the same id." if is_queued else "is being sent at this moment."
    messages.success(request, f"{found.event_id} {said}")
    return _back(own)


webhook = gzip_page(require_safe(_on_own(_show)))
deliveries = gzip_page(require_safe(_on_own(_show_deliveries)))
test = require_POST(_on_own(_test))
roll = require_POST(_on_own(_roll))
delete = require_POST(_on_own(_delete))
replay = require_POST(_on_own(_replay))


def _back(own: Subscription) -> HttpResponse:
    return HttpResponseRedirect(reverse("webhook-page", args=[own.pk]))


def _list(request: HttpRequest, user: User, form: SubscribeForm, *, status: int = 200) -> HttpResponse:
    own = Subscription.objects.owned_by(user).order_by("-pk")[: get_settings().webhooks_per_owner or None]
    context = {"own": own, "form": form, "catalog": OFFERED, "everything": ALL_EVENTS}
    return render(request, "webhooks/list.html", context, status=status)


def _page(request: HttpRequest, own: Subscription, *, secret: str = "") -> HttpResponse:
    waits = ", ".join(_in_words(wait_s) for wait_s in RETRY_AFTER_S)
    context = {**_deliveries(request, own), "secret": secret, "recipes": verify_recipes(), "waits": waits}
    return render(request, "webhooks/one.html", context)


def _deliveries(request: HttpRequest, own: Subscription) -> dict[str, object]:
    wanted = request.GET.get("before", "")
    before = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 19 else FARTHEST
    found = list(Delivery.objects.filter(subscription=own, pk__lt=before).order_by("-pk")[: SHOWN + 1])
    shown = found[:SHOWN]
    return {
        "own": own,
        "deliveries": shown,
        "older": shown[-1].pk if len(found) > SHOWN else None,
        "is_moving": any(one.status in Delivery.UNSETTLED for one in shown),
    }


def _in_words(wait_s: float) -> str:
    return f"{wait_s:g} s" if wait_s < 60 else f"{wait_s / 60:g} min" if wait_s < 3600 else f"{wait_s / 3600:g} h"


@cache
def verify_recipes() -> str:
    """The how-to's section on verifying, as Markdown; empty where the docs were not installed."""
    try:
        text = HOWTO.read_text("utf-8")
    except FileNotFoundError:
        return ""
    return text.partition(SECTION)[2].partition("\n## ")[0]


def _sentences(errors: Any) -> Iterator[tuple[str, str]]:
    """The first sentence about each field, those of `filters` by their own names."""
    for name, found in errors.items():
        if name == "filters" and isinstance(found, dict):
            yield from _sentences(found)
        else:
            yield name, "Choose at least one event." if name == "events" else _first(found)


def _first(found: Any) -> str:
    while isinstance(found, dict | list) and found:
        found = next(iter(found.values())) if isinstance(found, dict) else found[0]
    return str(found)


urlpatterns = [
    path("webhooks", webhooks, name="webhooks-page"),
    path("webhooks/<int:webhook_id>", webhook, name="webhook-page"),
    path("webhooks/<int:webhook_id>/deliveries", deliveries, name="webhook-page-deliveries"),
    path("webhooks/<int:webhook_id>/test", test, name="webhook-page-test"),
    path("webhooks/<int:webhook_id>/replay", replay, name="webhook-page-replay"),
    path("webhooks/<int:webhook_id>/roll-secret", roll, name="webhook-page-roll-secret"),
    path("webhooks/<int:webhook_id>/delete", delete, name="webhook-page-delete"),
]
