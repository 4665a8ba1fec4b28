"""Lists of the caller's own credentials."""

from typing import Any

from django.db import models
from rest_framework import serializers
from rest_framework.request import Request

from accounts.models import Credential
from accounts.rest import caller_of

LISTED = 1000


class ListQuery(serializers.Serializer[Any]):
    """What belongs in a list."""

    includeRevoked = serializers.BooleanField(default=False)


def listed(request: Request, kinds: list[Credential.Kind]) -> models.QuerySet[Credential]:
    """The newest LISTED of these kinds, without the revoked unless asked for."""
    query = ListQuery(data=request.query_params)
    query.is_valid(raise_exception=True)
    own = Credential.objects.filter(user=caller_of(request), kind__in=kinds)
    if not query.validated_data["includeRevoked"]:
        own = own.live()
    newest: models.QuerySet[Credential] = own.order_by("-created_at", "-pk")[:LISTED]
    return newest
