"""The keys by which the members of the caller's own team sign their frames."""

from typing import TypedDict

from django.db import transaction
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.rendering import NO_STORE
from accounts.rest import Body, caller_of
from gateway.models import EnvelopeKey
from gateway.service.team.team_rules import make_key
from kit.describe import ErrorBody, Items, Time
from kit.rows import show


class ApiEnvelopeKey(TypedDict):
    """A key of a team, without its secret."""

    keyId: str
    name: str
    createdAt: Time


class MadeEnvelopeKey(ApiEnvelopeKey):
    """A new key with its secret, this once."""

    secret: str


class KeyBody(Body):
    """The name of a new key in lists."""

    name = serializers.CharField(max_length=100)


class EnvelopeKeys(APIView):
    """`/gateway/keys`"""

    @extend_schema(responses=Items[ApiEnvelopeKey])
    def get(self, request: Request) -> Response:
        """The keys of one's team, newest first."""
        keys = EnvelopeKey.objects.filter(owner=caller_of(request)).order_by("-pk")
        return Response({"items": [show(ApiEnvelopeKey, one) for one in keys]})

    @extend_schema(request=KeyBody, responses={201: MadeEnvelopeKey, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Make a key; its secret is in this answer and nowhere else."""
        body = KeyBody.read(request)
        with transaction.atomic():
            key, secret = make_key(caller_of(request), str(body.validated_data["name"]))
        return Response(show(MadeEnvelopeKey, key, secret=secret), status=201, headers=NO_STORE)


class OneEnvelopeKey(APIView):
    """`/gateway/keys/{keyId}`"""

    @extend_schema(responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, key_id: str) -> Response:
        """Delete a key: what it signs from now on is refused."""
        deleted, _ = EnvelopeKey.objects.filter(owner=caller_of(request), key_id=key_id).delete()
        if not deleted:
            raise NotFound("no such key")
        return Response(status=204)


urlpatterns = [
    path("gateway/keys", EnvelopeKeys.as_view(), name="gateway-keys"),
    path("gateway/keys/<str:key_id>", OneEnvelopeKey.as_view(), name="gateway-key"),
]
