"""The keys of the caller's own network: made, listed, revoked, and given a new signing secret."""

from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.account import NewToken
from accounts.authn import SAFE_METHODS
from accounts.models import Credential
from accounts.paging import PageQuery, page, read_query
from accounts.rest import Body, Conflict, HasScope, HasUnlimitedToken, caller_of, get_one
from accounts.shapes import NO_STORE, user_agent_of
from agnt.models import ApiKey
from agnt.service.figures import load_calls
from agnt.service.keys import (
    MAX_OVERLAP,
    MIN_OVERLAP,
    OVERLAP,
    SENDERS,
    change_key,
    list_keys,
    mint_key,
    revoke_key,
    rotate_secret,
)
from kit.clock import db_now
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.list_fields import NameList
from kit.rows import RowSource, show

ENDED = "the key is revoked or has expired"
Tier = Literal["free", "pro", "enterprise"]
Scope = Literal["query", "booking", "full"]


class ApiNetworkKey(TypedDict):
    """A key without its text. `senders`: the `from` names that it may use; empty: any. `customer`: who pays.

    `callsToday`: on this UTC day. Until `previousSecretUntil` the previous secret verifies too.
    """

    id: Annotated[Uuid, RowSource("public_id")]
    name: Annotated[str, RowSource("credential.name")]
    prefix: Annotated[str, RowSource("credential.prefix")]
    tier: Tier
    scope: Scope
    customer: str
    senders: list[str]
    callsToday: int
    createdAt: Time
    lastUsedAt: Annotated[Time | None, RowSource("credential.last_used_at")]
    expiresAt: Annotated[Time | None, RowSource("credential.expires_at")]
    revokedAt: Annotated[Time | None, RowSource("credential.revoked_at")]
    previousSecretUntil: Annotated[Time | None, RowSource("previous_until")]


class MintedNetworkKey(ApiNetworkKey):
    """A new key with its text and its signing secret, this once."""

    key: str
    secret: str


class NetworkKeyWithSecret(ApiNetworkKey):
    """A key with its new signing secret, this once."""

    secret: str


class NetworkKeyQuery(PageQuery):
    """The keys to list."""

    includeRevoked = serializers.BooleanField(default=False)
    tier = serializers.ChoiceField(required=False, choices=ApiKey.Tier.values)


class KeyRights(Body):
    """The rights and the customer of a key; each can be changed. No `customer`: the key is one of its own."""

    tier = serializers.ChoiceField(choices=ApiKey.Tier.values, required=False)
    scope = serializers.ChoiceField(choices=ApiKey.Scope.values, required=False)
    customer = serializers.CharField(max_length=100, required=False, allow_blank=True)
    senders = NameList(rule=SENDERS)


class NetworkKeyBody(KeyRights, NewToken):
    """The body that makes a key. `expires_in`: seconds until the key expires; without: until revoked."""

    tier = serializers.ChoiceField(choices=ApiKey.Tier.values, default=ApiKey.Tier.FREE.value)
    scope = serializers.ChoiceField(choices=ApiKey.Scope.values, default=ApiKey.Scope.QUERY.value)


class SecretRotation(Body):
    """For how many seconds the previous secret stays valid."""

    overlap = serializers.IntegerField(
        default=int(OVERLAP.total_seconds()),
        min_value=int(MIN_OVERLAP.total_seconds()),
        max_value=int(MAX_OVERLAP.total_seconds()),
    )


class UnlimitedToWrite(HasUnlimitedToken):
    """Making a key takes a token without limits, as making any token does; listing keys does not."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """True if the request reads, or comes with such a token."""
        return request.method in SAFE_METHODS or super().has_permission(request, view)


class NetworkKeys(APIView):
    """`/network/keys`"""

    permission_classes = [IsAuthenticated, HasScope, UnlimitedToWrite]

    @extend_schema(parameters=[NetworkKeyQuery], responses=Page[ApiNetworkKey])
    def get(self, request: Request) -> Response:
        """The keys of your network, newest first, with their calls of today; live ones, unless asked for all."""
        query = read_query(NetworkKeyQuery, request)
        found = list_keys(caller_of(request), with_ended=query["includeRevoked"])
        if "tier" in query:
            found = found.filter(tier=query["tier"])
        return page(request, found.order_by("-pk"), show_keys, NetworkKeyQuery)

    @extend_schema(request=NetworkKeyBody, responses={201: MintedNetworkKey, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Make a key; its text and its signing secret are in this answer and nowhere else."""
        body = NetworkKeyBody.read(request)
        given = body.validated_data
        made = mint_key(
            caller_of(request),
            given["name"],
            tier=given["tier"],
            scope=given["scope"],
            customer=given.get("customer", ""),
            senders=given.get("senders", ()),
            lifetime=body.limits().lifetime,
            source=Credential.Source.MINT,
            user_agent=user_agent_of(request),
        )
        shown: MintedNetworkKey = {**show_keys([made.key])[0], "key": made.token, "secret": made.secret}
        return Response(shown, status=201, headers=NO_STORE)


class OneNetworkKey(APIView):
    """`/network/keys/{api_key_id}`"""

    permission_classes = [IsAuthenticated, HasUnlimitedToken]

    @extend_schema(request=KeyRights, responses={200: ApiNetworkKey, 409: ErrorBody})
    def patch(self, request: Request, api_key_id: UUID) -> Response:
        """Change what the body names; it counts from the next envelope on, today's calls go on counting."""
        key = get_key(request, api_key_id)
        body = KeyRights.read(request)
        if not key.credential.is_live:
            raise Conflict(ENDED)
        change_key(key, **body.validated_data)
        return Response(show_keys([key])[0])

    @extend_schema(responses={204: None})
    def delete(self, request: Request, api_key_id: UUID) -> Response:
        """Revoke a key; a repeated call succeeds. The bookings and the usage of the key stay."""
        revoke_key(get_key(request, api_key_id))
        return Response(status=204)


class RotateKeySecret(APIView):
    """`/network/keys/{api_key_id}/rotate-secret`"""

    permission_classes = [IsAuthenticated, HasUnlimitedToken]

    @extend_schema(request=SecretRotation, responses={200: NetworkKeyWithSecret, 409: ErrorBody})
    def post(self, request: Request, api_key_id: UUID) -> Response:
        """A new signing secret; the one before verifies for the overlap, a day unless said otherwise."""
        key = get_key(request, api_key_id)
        body = SecretRotation.read(request)
        if not key.credential.is_live:
            raise Conflict(ENDED)
        secret = rotate_secret(key, overlap=timedelta(seconds=body.validated_data["overlap"]))
        key.refresh_from_db(fields=["previous_until"])
        shown: NetworkKeyWithSecret = {**show_keys([key])[0], "secret": secret}
        return Response(shown, headers=NO_STORE)


def get_key(request: Request, api_key_id: UUID) -> ApiKey:
    """A key of the caller's own network; others' and absent ones are the same 404."""
    return get_one(list_keys(caller_of(request), with_ended=True).filter(public_id=api_key_id), "no such key")


def show_keys(keys: Sequence[ApiKey]) -> list[ApiNetworkKey]:
    """Keys that were loaded with their credentials, and their calls of today."""
    calls = load_calls(keys, db_now().astimezone(UTC).date())
    return [show(ApiNetworkKey, key, callsToday=calls.get(key.pk, 0)) for key in keys]
