"""The native API's calls on webhooks and their deliveries: a user's own.

A webhook of another owner and an absent webhook give the same 404.

The views of webhooks are also those of an API key, which a package above serves (`WebhooksView`).
"""

import json
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_filters
from accounts.quotas import QuotaExceeded
from accounts.rest import Body, Conflict, caller_of, check_no_fields, get_one
from kit.clock import db_now
from kit.describe import ErrorBody, Items, Page, Time, Uuid
from kit.rows import RowSource, show, show_each
from kit.safe_http import NotSent
from webhooks.models import MAX_URL_CHARS, Delivery, Sendable, Subscription, SubscriptionQuerySet
from webhooks.service import subscriptions as subscription_changes
from webhooks.service.sending import check_url, find_deliveries, send_again
from webhooks.service.subscriptions import EventRefused, WithSecret
from webhooks.wire import CATALOG

Json = dict[str, Any]
MAX_EVENTS = 50
MAX_EVENT_CHARS = 64
MAX_AGENT_CHARS = 161
NO_WEBHOOK = "no such webhook"
PAUSED = "the webhook is paused: resume it first"
OF_A_KEY = "the webhook is an API key's: you can pause, resume and delete it, its key does the rest"
NO_STORE = {"Cache-Control": "no-store"}


class WebhookFilters(TypedDict):
    """The filters of a webhook; an empty object has none."""

    sessionId: NotRequired[Uuid]
    routingName: NotRequired[str]


class Webhook(TypedDict):
    """A webhook without its secret. Until `previousSecretUntil` the secret before the newest signs too.

    `keyId`, `keyName`: of the AGNT key that owns the webhook; null for a user's own.
    """

    id: int
    url: str
    events: Annotated[list[str], RowSource("event_names")]
    filters: Annotated[WebhookFilters, RowSource("")]
    status: Literal["active", "unhealthy"]
    paused: Annotated[bool, RowSource("is_paused")]
    consecutiveFailures: int
    createdAt: Time
    lastDeliveryAt: Time | None
    previousSecretUntil: Annotated[Time | None, RowSource("previous_until")]
    keyId: Annotated[Uuid | None, RowSource("credential.api_key.public_id")]
    keyName: Annotated[str | None, RowSource("credential.name")]


class WebhookWithSecret(Webhook):
    """A webhook with its signing secret, this once."""

    signingSecret: str


class WebhookEvent(TypedDict):
    """A row of the catalog: when an event fires, and the fields of its payload."""

    type: str
    fires: str
    payload: str


class QueuedEvent(TypedDict):
    """The queued event: the id that the delivery carries."""

    eventId: str


class FiltersBody(Body):
    """The filters of a subscription; an event has to pass both."""

    sessionId = serializers.UUIDField(required=False, allow_null=True)
    routingName = serializers.CharField(required=False, allow_null=True, max_length=81)

    def validate_routingName(self, name: str | None) -> str:
        """The name with its @, also if the body has none."""
        return f"@{name.removeprefix('@')}" if name else ""


class SubscriptionBody(Body):
    """The body of POST, and any part of it that of PATCH. Event names need not be in the catalog."""

    url = serializers.CharField(max_length=MAX_URL_CHARS)
    events = serializers.ListField(
        child=serializers.RegexField(r"\A\S+\Z", max_length=MAX_EVENT_CHARS),
        allow_empty=False,
        max_length=MAX_EVENTS,
    )
    filters = FiltersBody(required=False, allow_null=True)
    paused = serializers.BooleanField(required=False)

    def validate_url(self, url: str) -> str:
        """The URL if the hub may send there at this moment; each delivery checks the URL again."""
        try:
            check_url(url)
        except NotSent as refused:
            raise serializers.ValidationError(str(refused)) from None
        return url

    def validate(self, attrs: Json) -> Json:
        """The checked body as fields of `Subscription`."""
        fields: Json = {"url": attrs["url"]} if "url" in attrs else {}
        if "events" in attrs:
            fields["events"] = " ".join(dict.fromkeys(attrs["events"]))
        if "filters" in attrs:
            filters = attrs["filters"] or {}
            fields["session_id"] = str(filters.get("sessionId") or "")
            fields["routing_name"] = filters.get("routingName") or ""
        if "paused" in attrs:
            fields["paused_at"] = db_now() if attrs["paused"] else None
        return fields


def show_with_secret(made: WithSecret) -> WebhookWithSecret:
    """A webhook and its secret, for the one answer that holds it."""
    return show(WebhookWithSecret, made.subscription, signingSecret=made.secret)


class WebhooksView(APIView):
    """The base of the calls on webhooks: those of a user, and of the user's API keys.

    A subclass with other methods and another `body_class` serves another caller.
    """

    body_class: ClassVar[type[SubscriptionBody]] = SubscriptionBody

    def find_own(self, request: Request) -> SubscriptionQuerySet:
        """The webhooks that the caller sees, with what is shown of each."""
        own: SubscriptionQuerySet = Subscription.objects.owned_by(caller_of(request))
        return own.select_related("credential__api_key")

    def subscribe(self, request: Request, fields: Json) -> WithSecret:
        """Make a webhook of the caller's.

        Raises:
            QuotaExceeded: nothing was written.
        """
        return subscription_changes.subscribe(caller_of(request), fields)

    def check_change(self, own: Subscription) -> None:
        """Refuse a change that is not the caller's to make."""
        if own.credential_id is not None:
            raise PermissionDenied(OF_A_KEY)

    def get_own(self, request: Request, webhook_id: int) -> Subscription:
        """A webhook that the caller sees; others' and absent ones are the same 404."""
        return get_one(self.find_own(request).filter(pk=webhook_id), NO_WEBHOOK)


class Webhooks(WebhooksView):
    """`/webhooks`"""

    @extend_schema(parameters=[PageQuery], responses=Page[Webhook])
    def get(self, request: Request) -> Response:
        """Your webhooks, newest first, without their secrets."""
        own = self.find_own(request).order_by("-pk")
        return page(request, own, show_each(Webhook))

    @extend_schema(request=SubscriptionBody, responses={201: WebhookWithSecret, 409: ErrorBody})
    def post(self, request: Request) -> Response:
        """Subscribe; the signing secret is in this answer and nowhere else."""
        body = self.body_class.read(request)
        try:
            made = self.subscribe(request, body.validated_data)
        except QuotaExceeded as many:
            raise Conflict(str(many)) from None
        except EventRefused as refused:
            raise serializers.ValidationError({"events": str(refused)}) from None
        return Response(show_with_secret(made), status=201, headers=NO_STORE)


class Catalog(APIView):
    """`/webhooks/events`"""

    @extend_schema(responses=Items[WebhookEvent])
    def get(self, request: Request) -> Response:
        """The events to subscribe to: when each event fires, and the fields of its payload."""
        return Response({"items": [show(WebhookEvent, row) for row in CATALOG]})


class OneWebhook(WebhooksView):
    """`/webhooks/{id}`"""

    @extend_schema(responses=Webhook)
    def get(self, request: Request, webhook_id: int) -> Response:
        """One of your webhooks, without its secret."""
        return Response(show(Webhook, self.get_own(request, webhook_id)))

    @extend_schema(request=SubscriptionBody(partial=True), responses={200: Webhook})
    def patch(self, request: Request, webhook_id: int) -> Response:
        """Change what the body names; what waits to be sent goes to the new URL.

        While it is `paused`, no event is queued for it, and what waits is not sent. Of a key's webhook its owner
        changes `paused` alone.
        """
        own = self.get_own(request, webhook_id)
        body = self.body_class.read(request, partial=True)
        if body.validated_data.keys() - {"paused_at"}:
            self.check_change(own)
        try:
            is_found = subscription_changes.revise(own, body.validated_data)
        except EventRefused as refused:
            raise serializers.ValidationError({"events": str(refused)}) from None
        if not is_found:
            raise NotFound(NO_WEBHOOK)
        return Response(show(Webhook, own))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, webhook_id: int) -> Response:
        """Delete it, with all that waits to be sent."""
        subscription_changes.unsubscribe(self.get_own(request, webhook_id).pk)
        return Response(status=204)


class SendTest(WebhooksView):
    """`/webhooks/{id}/test`"""

    @extend_schema(request=None, responses={202: QueuedEvent, 400: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, webhook_id: int) -> Response:
        """Queue a `webhook.test`, whatever it is subscribed to; 409 while it is paused."""
        own = self.get_own(request, webhook_id)
        self.check_change(own)
        check_no_fields(request)
        check_not_paused(own)
        queued: QueuedEvent = {"eventId": subscription_changes.send_test(own)}
        return Response(queued, status=202)


class RollSecret(WebhooksView):
    """`/webhooks/{id}/roll-secret`"""

    @extend_schema(request=None, responses={200: WebhookWithSecret, 400: ErrorBody})
    def post(self, request: Request, webhook_id: int) -> Response:
        """A new signing secret, in this answer and nowhere else; the one before signs too for 24 hours."""
        own = self.get_own(request, webhook_id)
        self.check_change(own)
        check_no_fields(request)
        made = subscription_changes.roll_secret(own.pk)
        if made is None:
            raise NotFound(NO_WEBHOOK)
        return Response(show_with_secret(made), headers=NO_STORE)


def check_not_paused(own: Subscription) -> None:
    """409 while it is paused."""
    if own.is_paused:
        raise Conflict(PAUSED)


class WebhookDelivery(TypedDict):
    """A delivery. While it is being sent, `nextAttemptAt` is when its sender is given up on."""

    id: int
    eventId: str
    type: str
    agentHandle: str | None
    status: Literal["pending", "sending", "delivered", "failed"]
    attempts: int
    queuedAt: Time
    nextAttemptAt: Time | None
    deliveredAt: Time | None
    lastStatus: int | None
    lastError: str | None


class WebhookDeliveryDetail(WebhookDelivery):
    """A delivery with its payload, and the first 1024 bytes of the last answer's body."""

    payload: dict[str, Any]
    lastResponse: str | None


class DeliveryQuery(PageQuery):
    """The deliveries to list."""

    status = serializers.ChoiceField(required=False, choices=Sendable.Status.choices)
    type = serializers.CharField(required=False, max_length=MAX_EVENT_CHARS, source="event")
    agent = serializers.CharField(required=False, max_length=MAX_AGENT_CHARS)


class Deliveries(WebhooksView):
    """`/webhooks/{id}/deliveries`"""

    @extend_schema(parameters=[DeliveryQuery], responses=Page[WebhookDelivery])
    def get(self, request: Request, webhook_id: int) -> Response:
        """The deliveries of the webhook, newest first; `status`, `type` and `agent` (a handle) take only those."""
        own = self.get_own(request, webhook_id)
        found = find_deliveries(own, **read_filters(DeliveryQuery, request))
        return page(request, found, show_each(WebhookDelivery), DeliveryQuery)


class OneDelivery(WebhooksView):
    """`/webhooks/{id}/deliveries/{deliveryId}`"""

    @extend_schema(responses=WebhookDeliveryDetail)
    def get(self, request: Request, webhook_id: int, delivery_id: int) -> Response:
        """One delivery with its payload, and the beginning of the last answer."""
        found = _get_delivery(self.get_own(request, webhook_id), delivery_id)
        return Response(show(WebhookDeliveryDetail, found, payload=json.loads(found.payload)))


class Replay(WebhooksView):
    """`/webhooks/{id}/deliveries/{deliveryId}/replay`"""

    @extend_schema(request=None, responses={202: QueuedEvent, 400: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, webhook_id: int, delivery_id: int) -> Response:
        """Send it again under the same id, with all its retries; 409 while it is being sent, or paused."""
        own = self.get_own(request, webhook_id)
        delivery = _get_delivery(own, delivery_id)
        check_no_fields(request)
        check_not_paused(own)
        if not send_again(delivery):
            raise Conflict("it is being sent at this moment")
        queued: QueuedEvent = {"eventId": delivery.event_id}
        return Response(queued, status=202)


def _get_delivery(own: Subscription, delivery_id: int) -> Delivery:
    found: Delivery = get_one(Delivery.objects.filter(subscription=own, pk=delivery_id), "no such delivery")
    return found


urlpatterns = [
    path("webhooks", Webhooks.as_view(), name="webhooks"),
    path("webhooks/events", Catalog.as_view(), name="webhook-events"),
    path("webhooks/<int:webhook_id>", OneWebhook.as_view(), name="webhook"),
    path("webhooks/<int:webhook_id>/test", SendTest.as_view(), name="webhook-test"),
    path("webhooks/<int:webhook_id>/roll-secret", RollSecret.as_view(), name="webhook-roll-secret"),
    path("webhooks/<int:webhook_id>/deliveries", Deliveries.as_view(), name="webhook-deliveries"),
    path("webhooks/<int:webhook_id>/deliveries/<int:delivery_id>", OneDelivery.as_view(), name="webhook-delivery"),
    path("webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/replay", Replay.as_view(), name="webhook-replay"),
]
