"""The native API's calls on the deliveries of a user's own webhooks. Others' and absent ones are the same 404."""

import json
from typing import Any, Literal, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Conflict, caller_of, check_no_fields, get_one
from kit.describe import ErrorBody, Page, Time
from kit.rows import show, show_each
from webhooks.models import Delivery, Sendable, Subscription
from webhooks.service.deliveries import DeliveryFilter
from webhooks.service.sending import send_again
from webhooks.surface.rest import MAX_EVENT_CHARS, QueuedEvent, get_own, refuse_paused

MAX_AGENT_CHARS = 161


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
    """Which deliveries to list."""

    status = serializers.ChoiceField(required=False, choices=Sendable.Status.choices)
    type = serializers.CharField(required=False, max_length=MAX_EVENT_CHARS, source="event")
    agent = serializers.CharField(required=False, max_length=MAX_AGENT_CHARS)


class Deliveries(APIView):
    """`/webhooks/{id}/deliveries`"""

    @extend_schema(parameters=[DeliveryQuery], responses=Page[WebhookDelivery])
    def get(self, request: Request, webhook_id: int) -> Response:
        """Its deliveries, newest first; `status`, `type` and `agent` (a handle) take only those."""
        own = get_own(webhook_id, caller_of(request))
        wanted = DeliveryFilter(**read_filters(DeliveryQuery, request))
        return page(request, wanted.find(own), show_each(WebhookDelivery), DeliveryQuery)


class OneDelivery(APIView):
    """`/webhooks/{id}/deliveries/{deliveryId}`"""

    @extend_schema(responses=WebhookDeliveryDetail)
    def get(self, request: Request, webhook_id: int, delivery_id: int) -> Response:
        """One delivery with its payload, and the beginning of the last answer."""
        found = _get_delivery(get_own(webhook_id, caller_of(request)), delivery_id)
        return Response(show(WebhookDeliveryDetail, found, payload=json.loads(found.payload)))


class Replay(APIView):
    """`/webhooks/{id}/deliveries/{deliveryId}/replay`"""

    @extend_schema(request=None, responses={202: QueuedEvent, 400: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, webhook_id: int, delivery_id: int) -> Response:
        """Send it again under the same id, with all its retries; 409 while it is being sent, or paused."""
        own = get_own(webhook_id, caller_of(request))
        delivery = _get_delivery(own, delivery_id)
        check_no_fields(request)
        refuse_paused(own)
        if not send_again(delivery):
            raise Conflict("it is being sent at this moment")
        queued: QueuedEvent = {"eventId": delivery.event_id}
        return Response(queued, status=202)


def _get_delivery(own: Subscription, delivery_id: int) -> Delivery:
    found: Delivery = get_one(Delivery.objects.filter(subscription=own, pk=delivery_id), "no such delivery")
    return found


urlpatterns = [
    path("webhooks/<int:webhook_id>/deliveries", Deliveries.as_view(), name="webhook-deliveries"),
    path("webhooks/<int:webhook_id>/deliveries/<int:delivery_id>", OneDelivery.as_view(), name="webhook-delivery"),
    path("webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/replay", Replay.as_view(), name="webhook-replay"),
]
