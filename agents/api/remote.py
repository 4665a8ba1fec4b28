"""REST shapes and views of the remote A2A server behind an agent, and of a look at its card."""

from typing import Annotated, Literal, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import Body, StrictJSONParser, caller_of
from accounts.sealing import SecretUnreadable
from agents.links.remote.approval import CARD_DECISIONS
from agents.links.remote.card import MAX_CREDENTIALS_CHARS, NO_AUTH, Auth, BadAuth, BadCard, make_auth
from agents.links.remote.card_content import BadKey, read_keys
from agents.links.remote.publishing import ServerSettings, find_server, look_again, move
from agents.models import Agent, RemoteServer
from agents.models.remote import MAX_SCHEME_CHARS, MAX_URL_CHARS, SWITCHES
from agents.transcript.pieces import Json
from kit.concurrency import CARD_LOOKUPS, take_slot
from kit.describe import Time
from kit.rows import RowSource, show


class ApiRemote(TypedDict):
    """The remote A2A server behind an agent. `breaker`: open while the hub leaves it alone, until `retryAt`.

    Credentials are never shown; `authScheme` is null when there are none. `cardChangedAt`: since when a changed
    card waits for its owner. `cardRefusal`: why the server's card keeps the hub from asking.
    `cardKeys`: the pinned keys, by their thumbprints (RFC 7638).
    """

    cardUrl: str
    authScheme: str | None
    breaker: Literal["closed", "open", "half-open"]
    retryAt: Time | None
    lastFailure: str | None
    cardChangedAt: Time | None
    cardRefusal: str | None
    tellsCaller: bool
    requiresTask: bool
    cardKeys: list[str]


class ApiCardMember(TypedDict):
    """A member of a card that differs. `before`, `after`: JSON texts, cut at 400 characters; null: absent."""

    path: str
    before: str | None
    after: str | None


class ApiCardChange(TypedDict):
    """A changed card that waits for the owner. `more`: members that differ besides those of `changes`.

    `asked`: whether the hub asks by the approved card meanwhile.
    """

    digest: str
    since: Time
    asked: Annotated[bool, RowSource("is_asked")]
    changes: Annotated[list[ApiCardMember], RowSource("changes.shown")]
    more: Annotated[int, RowSource("changes.more")]


class ApiCard(TypedDict):
    """An agent card as the hub understands it. `url`: where it was found; `callUrl`: where it is called."""

    url: str
    name: str
    description: str
    version: str
    skills: list[str]
    callUrl: Annotated[str, RowSource("interface.url")]
    protocolVersion: Annotated[Literal["1.0", "0.3"], RowSource("interface.version")]
    protocolBinding: Annotated[Literal["JSONRPC", "HTTP+JSON"], RowSource("interface.binding")]
    streaming: Annotated[bool, RowSource("streams")]


class RemoteAuth(Body):
    """The value of the `Authorization` header that the hub sends to a remote A2A server."""

    scheme = serializers.CharField(max_length=MAX_SCHEME_CHARS)
    credentials = serializers.CharField(max_length=MAX_CREDENTIALS_CHARS, write_only=True)

    def validate(self, attrs: Json) -> Json:
        """Make an `Auth` of the two values, under the name `auth`."""
        try:
            return {"auth": make_auth(attrs["scheme"], attrs["credentials"])}
        except BadAuth as bad:
            raise serializers.ValidationError(str(bad)) from None


class RemotePlace(Body):
    """The address of a remote A2A server: the URL of its card, or above; without `auth` the hub calls it unnamed.

    `cardKeys`: a public JWK or a JWK Set; one of the keys signed the card, or the hub asks nothing.
    `tellsCaller`: each request says who asks, in a signed header. `requiresTask`: an answer without a task fails.
    """

    cardUrl = serializers.CharField(max_length=MAX_URL_CHARS)
    auth = RemoteAuth(required=False, allow_null=True)
    cardKeys = serializers.DictField(source="keys", required=False, allow_null=True)

    tellsCaller = serializers.BooleanField(source="tells_caller", required=False)
    requiresTask = serializers.BooleanField(source="requires_task", required=False)

    def validate_cardKeys(self, given: Json | None) -> list[Json]:
        """The keys of a JWK or a JWK Set."""
        try:
            return read_keys(given) if given is not None else []
        except BadKey as bad:
            raise serializers.ValidationError(str(bad)) from None


class RemoteChanges(RemotePlace):
    """The same where it is to move: what is absent stays, null takes the credentials or the keys away."""

    cardUrl = serializers.CharField(required=False, max_length=MAX_URL_CHARS)


class CardDecision(Body):
    """The decision on the changed card that the owner saw: `digest` is that of `GET`."""

    digest = serializers.RegexField(r"\A[0-9a-f]{64}\Z")
    decision = serializers.ChoiceField(choices=list(CARD_DECISIONS))


def look_up_server(given: Json) -> ServerSettings:
    """Fetch the card of the server that the owner named; returns the server's settings."""
    switches = {name: given[name] for name in SWITCHES if name in given}
    try:
        return find_server(given["cardUrl"], _read_auth(given), given.get("keys") or [], switches)
    except BadCard as bad:
        raise ValidationError({"remote": {"cardUrl": str(bad)}}) from None


def _read_auth(given: Json) -> Auth:
    auth: Auth = given["auth"]["auth"] if given.get("auth") else NO_AUTH
    return auth


def move_server(agent: Agent, given: Json) -> None:
    """Move a remote agent to another URL or to other credentials."""
    server = RemoteServer.objects.filter(session_id=agent.session_id).first()
    if server is None:
        raise ValidationError({"remote": "this agent is a session, not a remote server"})
    if given and set(given) <= set(SWITCHES):
        RemoteServer.objects.filter(pk=server.pk).update(**given)
        return
    switches = {name: given[name] for name in SWITCHES if name in given}
    auth = _read_auth(given) if "auth" in given else None
    keys = given["keys"] or [] if "keys" in given else None
    try:
        wanted = look_again(server, given.get("cardUrl"), auth, keys, switches)
    except BadCard as bad:
        raise ValidationError({"remote": {"cardUrl": str(bad)}}) from None
    except (BadAuth, SecretUnreadable) as bad:
        raise ValidationError({"remote": {"auth": str(bad)}}) from None
    move(server, wanted)


class RemoteCards(APIView):
    """`/agents/cards`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(request=RemotePlace, responses=ApiCard)
    def post(self, request: Request) -> Response:
        """Fetch the agent card of a remote A2A server, and show how the hub would call it; nothing is kept."""
        place = RemotePlace.read(request).validated_data
        take_slot(request, CARD_LOOKUPS, caller_of(request).pk)
        return Response(show(ApiCard, look_up_server(place).card))
