"""`/network/webhooks`: the webhooks that an AGNT key owns, by the views of `webhooks.surface.api`.

Django serves them. A call counts for the day of the key, as `GET /network/venues` does.
"""

from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from agnt import settings
from agnt.endpoint.http import check_query, check_scheme, find_token
from agnt.models import ApiKey
from agnt.service.intake.arrivals import as_headers
from agnt.service.intake.rows import count_call
from agnt.service.key_checks import Rate, check_rate, make_key_error
from agnt.service.keys import FoundKey, find_key
from clawbridge.agnt.fields import EnvelopeRefused, ErrorCode, error_headers
from kit.asgi import RequestRefused
from kit.clock import approximate_now
from webhooks.models import Subscription, SubscriptionQuerySet
from webhooks.service.subscriptions import WithSecret, subscribe
from webhooks.surface import api
from webhooks.wire import ALL_EVENTS, BOOKING_EVENTS

EVENTS = (*BOOKING_EVENTS, ALL_EVENTS)


class KeyAuthentication(BaseAuthentication):
    """A live AGNT key as Bearer token; no other credential is one."""

    def authenticate(self, request: Request) -> tuple[None, FoundKey]:
        """The key. A key has no user.

        Raises:
            EnvelopeRefused: `tls_required`, `invalid_envelope`, `unauthorized`.
        """
        check_scheme(request.scheme or "", is_https=settings.IS_HTTPS)
        check_query(request.META.get("QUERY_STRING", ""))
        token = find_token(request.headers)
        key = find_key(token) if token else None
        if key is None:
            raise make_key_error()
        return None, key


class MayBook(BasePermission):
    """Webhooks tell of bookings: they take a key that may book."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """True, or `scope_denied` is raised."""
        if key_of(request).scope not in ApiKey.BOOKING_SCOPES:
            raise EnvelopeRefused(ErrorCode.SCOPE_DENIED, "webhooks take a key of the scope booking or full")
        return True


class KeyWebhookBody(api.SubscriptionBody):
    """The body of POST, and any part of it that of PATCH; `events` are those of bookings, or `*`."""

    events = serializers.ListField(
        child=serializers.ChoiceField(choices=EVENTS), allow_empty=False, max_length=api.MAX_EVENTS
    )
    # Bookings have no session; so declared, the body has no such field.
    filters = None  # type: ignore[assignment]


class OfKey(api.WebhooksView):
    """The base of the calls: the webhooks of the key that comes with the request."""

    tag = "agnt"
    further_errors = frozenset({400, 429})  # for the description: a key in the address, and the limit of the day
    authentication_classes = [KeyAuthentication]
    permission_classes = [MayBook]
    body_class = KeyWebhookBody
    rate: Rate | None = None

    def perform_authentication(self, request: Request) -> None:
        """Find the key, and count the call.

        Raises:
            EnvelopeRefused: as `KeyAuthentication`; `rate_limited`.
        """
        key, now = key_of(request), approximate_now()
        self.rate = count_call(key, now)
        check_rate(self.rate, now)

    def handle_exception(self, exc: Exception) -> Response:
        """The answer to a failure: a refusal of AGNT has the code of AGNT."""
        if isinstance(exc, EnvelopeRefused):
            exc = RequestRefused(exc.status, exc.code.value, str(exc), *as_headers(error_headers(exc)))
        return super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """The response, with the calls that are left."""
        if self.rate is not None:
            for name, value in self.rate.headers().items():
                response[name] = value
        return super().finalize_response(request, response, *args, **kwargs)

    def find_own(self, request: Request) -> SubscriptionQuerySet:
        """See `WebhooksView`."""
        own: SubscriptionQuerySet = Subscription.objects.of_key(key_of(request).credential_id)
        return own.select_related("credential__api_key")

    def subscribe(self, request: Request, fields: api.Json) -> WithSecret:
        """See `WebhooksView`."""
        key = key_of(request)
        return subscribe(User.objects.get(pk=key.owner_id), fields, credential_id=key.credential_id)

    def check_change(self, own: Subscription) -> None:
        """See `WebhooksView`: the key changes all of its own."""


def key_of(request: Request) -> FoundKey:
    """The key that came with a request."""
    return cast(FoundKey, request.auth)


@extend_schema_view(
    get=extend_schema(summary="The webhooks of the key, newest first, without their secrets."),
    post=extend_schema(request=KeyWebhookBody),
)
class WebhooksOfKey(OfKey, api.Webhooks):
    """`/network/webhooks`"""


@extend_schema_view(
    get=extend_schema(summary="A webhook of the key, without its secret."),
    patch=extend_schema(request=KeyWebhookBody(partial=True)),
)
class OneWebhookOfKey(OfKey, api.OneWebhook):
    """`/network/webhooks/{id}`"""


class SendTestOfKey(OfKey, api.SendTest):
    """`/network/webhooks/{id}/test`"""


class RollSecretOfKey(OfKey, api.RollSecret):
    """`/network/webhooks/{id}/roll-secret`"""


urlpatterns = [
    path("network/webhooks", WebhooksOfKey.as_view(), name="key-webhooks"),
    path("network/webhooks/<int:webhook_id>", OneWebhookOfKey.as_view(), name="key-webhook"),
    path("network/webhooks/<int:webhook_id>/test", SendTestOfKey.as_view(), name="key-webhook-test"),
    path(
        "network/webhooks/<int:webhook_id>/roll-secret", RollSecretOfKey.as_view(), name="key-webhook-roll-secret"
    ),
]
