"""A user's own webhooks. Others' and absent ones are the same 404."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page
from accounts.rest import Conflict, caller_of
from webhooks import subscribing
from webhooks.catalog import CATALOG
from webhooks.models import Subscription
from webhooks.rest import serializers as shapes

NO_STORE = {"Cache-Control": "no-store"}
TAG = ["webhooks"]


class Webhooks(APIView):
    """`/webhooks`"""

    @extend_schema(
        operation_id="listWebhooks", tags=TAG, parameters=[PageQuery], responses={200: shapes.WebhooksShape}
    )
    def get(self, request: Request) -> Response:
        """Your webhooks, newest first, without their secrets."""
        own = Subscription.objects.owned_by(caller_of(request)).order_by("-pk")
        return page(request, own, shapes.show_subscriptions)

    @extend_schema(
        operation_id="addWebhook",
        tags=TAG,
        request=shapes.SubscriptionBody,
        responses={201: shapes.WebhookWithSecretShape},
    )
    def post(self, request: Request) -> Response:
        """Subscribe; the signing secret is in this answer and nowhere else."""
        body = shapes.SubscriptionBody(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            made = subscribing.subscribe(caller_of(request), body.fields_of_row())
        except subscribing.TooMany as many:
            raise Conflict(str(many)) from None
        return Response(shapes.show_with_secret(made), status=201, headers=NO_STORE)


class Catalog(APIView):
    """`/webhooks/events`"""

    @extend_schema(operation_id="listWebhookEvents", tags=TAG, responses={200: shapes.CatalogShape})
    def get(self, request: Request) -> Response:
        """What one can subscribe to: when each event fires, and the fields of its payload."""
        return Response({"items": [asdict(row) for row in CATALOG]})


class OneWebhook(APIView):
    """`/webhooks/{id}`"""

    @extend_schema(operation_id="getWebhook", tags=TAG, responses={200: shapes.WebhookShape})
    def get(self, request: Request, webhook_id: int) -> Response:
        """One of your webhooks, without its secret."""
        return Response(shapes.show_subscription(get_own(webhook_id, caller_of(request))))

    @extend_schema(
        operation_id="changeWebhook",
        tags=TAG,
        request=shapes.SubscriptionBody(partial=True),
        responses={200: shapes.WebhookShape},
    )
    def patch(self, request: Request, webhook_id: int) -> Response:
        """Change what the body names; what waits to be sent goes to the new URL."""
        own = get_own(webhook_id, caller_of(request))
        body = shapes.SubscriptionBody(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        subscribing.revise(own, body.fields_of_row())
        return Response(shapes.show_subscription(own))

    @extend_schema(operation_id="deleteWebhook", tags=TAG, responses={204: None})
    def delete(self, request: Request, webhook_id: int) -> Response:
        """Delete it, with all that waits to be sent."""
        subscribing.unsubscribe(get_own(webhook_id, caller_of(request)).pk)
        return Response(status=204)


class TestWebhook(APIView):
    """`/webhooks/{id}/test`"""

    @extend_schema(operation_id="testWebhook", tags=TAG, request=None, responses={202: shapes.EventIdShape})
    def post(self, request: Request, webhook_id: int) -> Response:
        """Queue a `webhook.test`, whatever it is subscribed to and however it is."""
        own = get_own(webhook_id, caller_of(request))
        return Response({"eventId": subscribing.send_test(own)}, status=202)


class RollSecret(APIView):
    """`/webhooks/{id}/roll-secret`"""

    @extend_schema(
        operation_id="rollWebhookSecret", tags=TAG, request=None, responses={200: shapes.WebhookWithSecretShape}
    )
    def post(self, request: Request, webhook_id: int) -> Response:
        """A new signing secret, in this answer and nowhere else; the one before signs too for 24 hours."""
        made = subscribing.roll_secret(get_own(webhook_id, caller_of(request)).pk)
        if made is None:
            raise NotFound("no such webhook")
        return Response(shapes.show_with_secret(made), headers=NO_STORE)


def get_own(webhook_id: int, owner: User) -> Subscription:
    """A webhook of this owner's; others' and absent ones are the same 404."""
    found: Subscription | None = Subscription.objects.owned_by(owner).filter(pk=webhook_id).first()
    if found is None:
        raise NotFound("no such webhook")
    return found
