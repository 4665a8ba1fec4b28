"""What was sent, is being sent and will be sent to a webhook of the caller's."""

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page
from accounts.rest import Conflict, caller_of, check_no_fields
from kit.describe import ErrorBody, Page
from webhooks.leases import send_again
from webhooks.models import Delivery
from webhooks.rest.serializers import show_deliveries
from webhooks.rest.shapes import QueuedEvent, WebhookDelivery
from webhooks.rest.subscriptions import get_own


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
