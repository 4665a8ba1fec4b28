"""A user's webhooks in a browser: create, change, pause and test webhooks; watch and repeat deliveries."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import path, reverse

from accounts.models import User
from accounts.pages import owner_form, owner_page, owner_post
from accounts.quotas import QuotaExceeded
from kit.clock import db_now
from kit.ids import read_row_id
from kit.markdown import SECTION_ID
from webhooks import settings
from webhooks.models import Delivery, Subscription
from webhooks.service import subscriptions as subscription_changes
from webhooks.service.sending import (
    ENDS_EARLY,
    RETRY_AFTER_S,
    find_deliveries,
    find_filter_choices,
    send_again,
    show_body,
)
from webhooks.service.subscriptions import EventRefused
from webhooks.surface.api import PAUSED, SubscriptionBody
from webhooks.wire import ALIASES, CATALOG, STAFF_ACTED, TEST, EventType

SHOWN = 30
SHOWN_OF_KEYS = 100
MAX_FILTER_CHARS = 161
HOWTO = Path(__file__).resolve().parents[2] / "docs" / "howto" / "receive-webhooks.md"
SECTION = "## Verify\n"
OFFERED = tuple(row for row in CATALOG if row.type != TEST)
OFFERED_TYPES = {row.type for row in OFFERED}
STATUSES = [status.value for status in Delivery.Status]

OnOwn = Callable[..., HttpResponse]
View = Callable[..., HttpResponseBase]


class SubscriptionForm:
    """The typed values, checked as in the native API. `errors`: a sentence for each field that is wrong. `others`:
    named events that are not in the catalog.
    """

    def __init__(self, given: QueryDict | None = None) -> None:
        given = given if given is not None else QueryDict()
        self.url = given.get("url", "").strip()
        self.events = given.getlist("events")
        self.session_id = given.get("session_id", "").strip()
        self.routing_name = given.get("routing_name", "").strip()
        self.others: list[str] = []
        self.errors: dict[str, str] = {}

    @classmethod
    def of(cls, own: Subscription, given: QueryDict | None = None) -> "SubscriptionForm":
        """The form with the values of a webhook, or with the values that were typed to change it."""
        form = cls(given)
        form.others = [name for name in own.event_names if ALIASES.get(name, name) not in OFFERED_TYPES]
        if given is None:
            form.url, form.session_id, form.routing_name = own.url, own.session_id, own.routing_name
            form.events = [name if name in form.others else ALIASES.get(name, name) for name in own.event_names]
        return form

    def read(self) -> dict[str, Any] | None:
        """Check the typed values; returns fields of `Subscription`, or None if a value is wrong."""
        filters = {"sessionId": self.session_id or None, "routingName": self.routing_name or None}
        body = SubscriptionBody(data={"url": self.url, "events": self.events, "filters": filters})
        if body.is_valid():
            return dict(body.validated_data)
        self.errors = dict(_sentences(body.errors))
        return None


@owner_form
def webhooks(request: HttpRequest, user: User) -> HttpResponse:
    """The page of the user's webhooks, with the form that makes another; a POST shows its secret this once."""
    if request.method != "POST":
        return _list(request, user, SubscriptionForm())
    form = SubscriptionForm(request.POST)
    details = form.read()
    if details is None:
        return _list(request, user, form, status=400)
    try:
        made = subscription_changes.subscribe(user, details)
    except QuotaExceeded as many:
        form.errors["url"] = f"{str(many).capitalize()}: delete one first."
        return _list(request, user, form, status=409)
    except EventRefused as refused:
        form.errors["events"] = f"{str(refused).capitalize()}."
        return _list(request, user, form, status=400)
    return _page(request, made.subscription, secret=made.secret)


def _own_view(
    *, posts: bool = False, is_of_keys: bool = True
) -> Callable[[OnOwn], Callable[..., HttpResponseBase]]:
    """Make a view of a function on a webhook of the visitor's own; webhooks of other users and absent ones give
    the same 404.

    `is_of_keys` False: for a webhook of an API key the view answers 403.
    """

    def decorate(act: OnOwn) -> View:
        def view(request: HttpRequest, user: User, /, webhook_id: int, **more: Any) -> HttpResponse:
            found = Subscription.objects.owned_by(user).select_related("credential")
            own = found.filter(pk=webhook_id).first()
            if own is None:
                raise Http404
            if own.credential is not None and not is_of_keys:
                raise PermissionDenied
            return act(request, own, **more)

        return owner_post(view) if posts else owner_page(view)

    return decorate


@_own_view()
def webhook(request: HttpRequest, own: Subscription) -> HttpResponse:
    """A webhook with its newest deliveries."""
    return _page(request, own)


@_own_view()
def deliveries(request: HttpRequest, own: Subscription) -> HttpResponse:
    """Only the list of deliveries, for the script of the page."""
    return render(request, "webhooks/deliveries.html", _deliveries(request, own))


@_own_view()
def delivery(request: HttpRequest, own: Subscription, delivery_id: int) -> HttpResponse:
    """One delivery: the body that was sent, and the answer."""
    one = _get_delivery(own, str(delivery_id))
    body = show_body(one)
    context = {"own": own, "one": one, "body": body, "is_cut": body.endswith(ENDS_EARLY)}
    context["is_moving"] = one.status in Delivery.UNSETTLED
    return render(request, "webhooks/delivery.html", context)


@_own_view(posts=True, is_of_keys=False)
def edit(request: HttpRequest, own: Subscription) -> HttpResponse:
    """Change URL, events and filters."""
    form = SubscriptionForm.of(own, request.POST)
    changes = form.read()
    if changes is None:
        return _page(request, own, form=form, status=400)
    try:
        subscription_changes.revise(own, changes)
    except EventRefused as refused:
        form.errors["events"] = f"{str(refused).capitalize()}."
        return _page(request, own, form=form, status=400)
    messages.success(request, "Saved. What waits to be sent goes to the URL as it is now.")
    return _back(own)


@_own_view(posts=True)
def pause(request: HttpRequest, own: Subscription) -> HttpResponse:
    """Pause a webhook: the hub queues and sends nothing for it."""
    subscription_changes.revise(own, {"paused_at": db_now()})
    messages.warning(request, "Paused.")
    return _back(own)


@_own_view(posts=True)
def resume(request: HttpRequest, own: Subscription) -> HttpResponse:
    """Resume a webhook, beginning with the deliveries that waited."""
    subscription_changes.revise(own, {"paused_at": None})
    messages.success(request, "Resumed: what waited is sent now.")
    return _back(own)


@_own_view(posts=True, is_of_keys=False)
def test(request: HttpRequest, own: Subscription) -> HttpResponse:
    """Queue a test event."""
    if own.is_paused:
        return _refused_paused(request, own)
    event_id = subscription_changes.send_test(own)
    messages.success(request, f"A test is on its way: {event_id}.")
    return _back(own)


@_own_view(posts=True, is_of_keys=False)
def roll(request: HttpRequest, own: Subscription) -> HttpResponse:
    """Make a new signing secret, and show it once."""
    made = subscription_changes.roll_secret(own.pk)
    if made is None:
        raise Http404
    return _page(request, made.subscription, secret=made.secret)


@_own_view(posts=True)
def delete(request: HttpRequest, own: Subscription) -> HttpResponse:
    """Delete the webhook with its deliveries."""
    subscription_changes.unsubscribe(own.pk)
    messages.success(request, "Deleted, with all that waited to be sent.")
    return HttpResponseRedirect(reverse("webhooks-page"))


@_own_view(posts=True)
def replay(request: HttpRequest, own: Subscription) -> HttpResponse:
    """Send a delivery again."""
    found = _get_delivery(own, request.POST.get("delivery", ""))
    if own.is_paused:
        return _refused_paused(request, own)
    is_queued = send_again(found)
    said = "will be sent again, under the same id." if is_queued else "is being sent at this moment."
    messages.success(request, f"{found.event_id} {said}")
    if request.POST.get("from") == "delivery":
        return HttpResponseRedirect(reverse("webhook-page-delivery", args=[own.pk, found.pk]))
    return _back(own)


def _get_delivery(own: Subscription, wanted: str) -> Delivery:
    found: Delivery | None = Delivery.objects.filter(subscription=own, pk=read_row_id(wanted)).first()
    if found is None:
        raise Http404
    return found


def _refused_paused(request: HttpRequest, own: Subscription) -> HttpResponse:
    messages.error(request, f"Not sent: {PAUSED}.")
    return _back(own)


def _back(own: Subscription) -> HttpResponse:
    return HttpResponseRedirect(reverse("webhook-page", args=[own.pk]))


def _offered(owner: User) -> list[EventType]:
    """The events to choose from: some are for administrators."""
    return [row for row in OFFERED if owner.is_staff or row.type != STAFF_ACTED]


def _list(request: HttpRequest, user: User, form: SubscriptionForm, *, status: int = 200) -> HttpResponse:
    own = Subscription.objects.owned_by(user).order_by("-pk")
    of_keys = own.exclude(credential=None).select_related("credential")[: SHOWN_OF_KEYS + 1]
    context = {
        "own": [*own.filter(credential=None)[: settings.WEBHOOKS_PER_OWNER or None], *of_keys[:SHOWN_OF_KEYS]],
        "shown_of_keys": SHOWN_OF_KEYS if len(of_keys) > SHOWN_OF_KEYS else None,
        "form": form,
        "catalog": _offered(user),
    }
    return render(request, "webhooks/list.html", context, status=status)


def _page(
    request: HttpRequest,
    own: Subscription,
    *,
    secret: str = "",
    form: SubscriptionForm | None = None,
    status: int = 200,
) -> HttpResponse:
    waits = ", ".join(_in_words(wait_s) for wait_s in RETRY_AFTER_S)
    context = {
        **_deliveries(request, own),
        "secret": secret,
        "recipes": verify_recipes(),
        "waits": waits,
        "form": form or SubscriptionForm.of(own),
        "catalog": _offered(own.owner),
        "choices": find_filter_choices(own),
        "statuses": STATUSES,
    }
    return render(request, "webhooks/one.html", context, status=status)


def _deliveries(request: HttpRequest, own: Subscription) -> dict[str, object]:
    asked = {name: request.GET.get(name, "")[:MAX_FILTER_CHARS] for name in ("status", "event", "agent")}
    before = read_row_id(request.GET.get("before", ""))
    older = Q() if before is None else Q(pk__lt=before)
    found = list(find_deliveries(own, **asked).filter(older)[: SHOWN + 1])
    shown = found[:SHOWN]
    return {
        "own": own,
        "wanted": asked,
        "query": urlencode({name: value for name, value in asked.items() if value}),
        "deliveries": shown,
        "older": shown[-1].pk if len(found) > SHOWN else None,
        "is_moving": any(one.status in Delivery.UNSETTLED for one in shown) and not own.is_paused,
    }


def _in_words(wait_s: float) -> str:
    return f"{wait_s:g} s" if wait_s < 60 else f"{wait_s / 60:g} min" if wait_s < 3600 else f"{wait_s / 3600:g} h"


@cache
def verify_recipes() -> str:
    """The how-to's section on verifying, as Markdown; empty where the docs were not installed.

    A link to another section of the how-to leads to its page in the documentation.
    """
    try:
        text = HOWTO.read_text("utf-8")
    except FileNotFoundError:
        return ""
    section = text.partition(SECTION)[2].partition("\n## ")[0]
    return section.replace("](#", f"]({reverse('docs-page', args=[HOWTO.stem])}#{SECTION_ID}")


def _sentences(errors: Any) -> Iterator[tuple[str, str]]:
    """The first sentence about each field; fields of `filters` are named without `filters`."""
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
    path("webhooks/<int:webhook_id>/deliveries/<int:delivery_id>", delivery, name="webhook-page-delivery"),
    path("webhooks/<int:webhook_id>/edit", edit, name="webhook-page-edit"),
    path("webhooks/<int:webhook_id>/pause", pause, name="webhook-page-pause"),
    path("webhooks/<int:webhook_id>/resume", resume, name="webhook-page-resume"),
    path("webhooks/<int:webhook_id>/test", test, name="webhook-page-test"),
    path("webhooks/<int:webhook_id>/replay", replay, name="webhook-page-replay"),
    path("webhooks/<int:webhook_id>/roll-secret", roll, name="webhook-page-roll-secret"),
    path("webhooks/<int:webhook_id>/delete", delete, name="webhook-page-delete"),
]
