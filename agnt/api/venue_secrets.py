"""The signing secret of a venue of the caller's own network: shown, and made anew."""

from datetime import timedelta
from typing import Annotated, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import Body, HasUnlimitedToken
from accounts.shapes import NO_STORE
from agnt.api.venues import get_venue
from agnt.service.keys import (
    LEAST_OVERLAP,
    MOST_OVERLAP,
    OVERLAP,
    VenueSecrets,
    derive_venue_secrets,
    rotate_venue_secret,
)
from kit.describe import Time
from kit.rows import Source, show


class ApiVenueSecret(TypedDict):
    """What the hub signs with. Until `previousUntil` that is `previous`, and from then on `secret`."""

    secret: str
    previous: str | None
    previousUntil: Annotated[Time | None, Source("until")]


class VenueSecretRotation(Body):
    """How many seconds the hub signs with the secret before: 0, or from 300 on."""

    overlap = serializers.IntegerField(
        default=int(OVERLAP.total_seconds()), min_value=0, max_value=int(MOST_OVERLAP.total_seconds())
    )

    def validate_overlap(self, seconds: int) -> int:
        """No overlap, or one that is long enough."""
        least = int(LEAST_OVERLAP.total_seconds())
        if 0 < seconds < least:
            raise serializers.ValidationError(f"want 0, or at least {least}")
        return seconds


class VenueSecret(APIView):
    """`/network/venues/{venue_id}/secret`"""

    permission_classes = [IsAuthenticated, HasUnlimitedToken]

    @extend_schema(responses=ApiVenueSecret)
    def get(self, request: Request, venue_id: UUID) -> Response:
        """The secret with which the hub signs what it asks of the venue, of an agent as by URL."""
        return Response(_show(derive_venue_secrets(get_venue(request, venue_id))), headers=NO_STORE)

    @extend_schema(request=VenueSecretRotation, responses={200: ApiVenueSecret})
    def post(self, request: Request, venue_id: UUID) -> Response:
        """A new secret; for the overlap, a day unless said otherwise, the hub signs with the one before."""
        venue = get_venue(request, venue_id)
        overlap = timedelta(seconds=VenueSecretRotation.read(request).validated_data["overlap"])
        return Response(_show(rotate_venue_secret(venue, overlap=overlap)), headers=NO_STORE)


def _show(secrets: VenueSecrets) -> ApiVenueSecret:
    previous = secrets.previous.hex() or None
    return show(ApiVenueSecret, secrets, secret=secrets.newest.hex(), previous=previous)
