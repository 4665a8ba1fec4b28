"""A user's own webhooks and their deliveries. Others' and absent ones are the same 404."""

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page
from accounts.rest import Conflict, caller_of, check_no_fields
from kit.describe import ErrorBody, Items, Page
from webhooks import subscribing
from webhooks.catalog import CATALOG
from webhooks.leases import send_again
from webhooks.models import Delivery, Subscription
from webhooks.rest.serializers import (
    SubscriptionBody,
    show_deliveries,
    show_event,
    show_subscription,
    show_subscriptions,
    show_with_secret,
)
from webhooks.rest.shapes import QueuedEvent, Webhook, WebhookDelivery, WebhookEvent, WebhookWithSecret

NO_STORE = {"Cache-Control": "no-store"}


class Webhooks(APIView):
    """`/webhooks`"""

    @extend_schema(parameters=[PageQuery], responses=Page[Webhook])
    def get(self, request: Request) -> Response:
        """Your webhooks, newest first, without their secrets."""
        own = Subscription.objects.owned_by(caller_of(request)).order_by("-pk")
        return page(request, own, show_subscriptions)

    @extend_schema(request=SubscriptionBody, responses={201: WebhookWithSecret, 409: ErrorBody})
    def post(self, request: Request) -> Response:
        """Subscribe; the signing secret is in this answer and nowhere else."""
        body = SubscriptionBody(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            made = subscribing.subscribe(caller_of(request), body.fields_of_row())
        except subscribing.TooMany as many:
            raise Conflict(str(many)) from None
        return Response(show_with_secret(made), status=201, headers=NO_STORE)


class Catalog(APIView):
    """`/webhooks/events`"""

    @extend_schema(responses=Items[WebhookEvent])
    def get(self, request: Request) -> Response:
        """What one can subscribe to: when each event fires, and the fields of its payload."""
        return Response({"items": [show_event(row) for row in CATALOG]})


class OneWebhook(APIView):
    """`/webhooks/{id}`"""

    @extend_schema(responses=Webhook)
    def get(self, request: Request, webhook_id: int) -> Response:
        """One of your webhooks, without its secret."""
        return Response(show_subscription(get_own(webhook_id, caller_of(request))))

    @extend_schema(request=SubscriptionBody(partial=True), responses=Webhook)
    def patch(self, request: Request, webhook_id: int) -> Response:
        """Change what the body names; what waits to be sent goes to the new URL."""
        own = get_own(webhook_id, caller_of(request))
        body = SubscriptionBody(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        subscribing.revise(own, body.fields_of_row())
        return Response(show_subscription(own))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, webhook_id: int) -> Response:
        """Delete it, with all that waits to be sent."""
        subscribing.unsubscribe(get_own(webhook_id, caller_of(request)).pk)
        return Response(status=204)


class SendTest(APIView):
    """`/webhooks/{id}/test`"""

    @extend_schema(request=None, responses={202: QueuedEvent, 400: ErrorBody})
    def post(self, request: Request, webhook_id: int) -> Response:
        """Queue a `webhook.test`, whatever it is subscribed to and however it is."""
        own = get_own(webhook_id, caller_of(request))
        check_no_fields(request)
        return Response({"eventId": subscribing.send_test(own)}, status=202)


class RollSecret(APIView):
    """`/webhooks/{id}/roll-secret`"""

    @extend_schema(request=None, responses={200: WebhookWithSecret, 400: ErrorBody})
    def post(self, request: Request, webhook_id: int) -> Response:
        """A new signing secret, in this answer and nowhere else; the one before signs too for 24 hours."""
        own = get_own(webhook_id, caller_of(request))
        check_no_fields(request)
        made = subscribing.roll_secret(own.pk)
        if made is None:
            raise NotFound("no such webhook")
        return Response(show_with_secret(made), headers=NO_STORE)


class Deliveries(APIView):
    """`/webhooks/{id}/deliveries`"""

    @extend_schema(parameters=[PageQuery], responses=Page[WebhookDelivery])
    def get(self, request: Request, webhook_id: int) -> Response:
        """Its deliveries, newest first."""
        own = get_own(webhook_id, caller_of(request))
        return page(request, Delivery.objects.filter(subscription=own).order_by("-pk"), show_deliveries)


class Replay(APIView):
    """`/webhooks/{id}/deliveries/{deliveryId}/replay`"""

    @extend_schema(request=None, responses={202: QueuedEvent, 400: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, webhook_id: int, delivery_id: int) -> Response:
        """Send it again under the same id, with all its retries; 409 while it is being sent."""
        own = get_own(webhook_id, caller_of(request))
        delivery = Delivery.objects.filter(subscription=own, pk=delivery_id).first()
        if delivery is None:
            raise NotFound("no such delivery")
        check_no_fields(request)
        if not send_again(delivery):
            raise Conflict("it is being sent at this moment")
        return Response({"eventId": delivery.event_id}, status=202)


def get_own(webhook_id: int, owner: User) -> Subscription:
    """A webhook of this owner's; others' and absent ones are the same 404."""
    found: Subscription | None = Subscription.objects.owned_by(owner).filter(pk=webhook_id).first()
    if found is None:
        raise NotFound("no such webhook")
    return found
