"""The REST answers of sessions and agents (docs/reference/rest.md), and the bodies about remote servers."""

from typing import Annotated, Literal, NotRequired, TypedDict

from rest_framework import serializers

from accounts.rest import Body
from agents.links.remote.approval import CARD_DECISIONS
from agents.links.remote.card import MAX_CREDENTIALS_CHARS, BadAuth, make_auth
from agents.links.remote.card_content import BadKey, read_keys
from agents.models.agent import (
    MAX_LIMIT_USD,
    MAX_QUEUE,
    MAX_QUEUE_WAIT_S,
    QUEUE_WAIT_S,
)
from agents.models.remote import MAX_SCHEME_CHARS, MAX_URL_CHARS
from agents.transcript.pieces import Json
from kit.describe import Time, Uuid
from kit.money import DECIMAL_PLACES
from kit.rows import Source

Access = Literal["public", "limited", "private"]


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
    asked: Annotated[bool, Source("is_asked")]
    changes: list[ApiCardMember]
    more: Annotated[int, Source("changes.more")]


class ApiCard(TypedDict):
    """An agent card as the hub understands it. `url`: where it was found; `callUrl`: where it is called."""

    url: str
    name: str
    description: str
    version: str
    skills: list[str]
    callUrl: Annotated[str, Source("interface.url")]
    protocolVersion: Annotated[Literal["1.0", "0.3"], Source("interface.version")]
    protocolBinding: Annotated[Literal["JSONRPC", "HTTP+JSON"], Source("interface.binding")]
    streaming: Annotated[bool, Source("streams")]


class ApiSkill(TypedDict):
    """A skill in an agent's A2A card."""

    id: str
    name: str
    description: NotRequired[str]
    tags: NotRequired[list[str]]
    examples: NotRequired[list[str]]
    inputModes: NotRequired[list[str]]
    outputModes: NotRequired[list[str]]


class ApiQueueing(TypedDict):
    """How many questions may wait for an agent, and how many seconds each."""

    max: int
    waitS: int


class ApiAgent(TypedDict):
    """A published session, or the draft of one. `allowedLogins`, `callerBudgets`, the limits and the sum of costs,
    and `remote` are there for its owner alone.

    `remote` only where the agent is a remote A2A server.
    `waitS`: seconds it may take for callers who stream or do not wait; null: the hub's own limit. `skills`,
    `defaultInputModes`, `defaultOutputModes`, `maxBodyBytes`: empty or null where the hub's own hold.
    """

    id: int
    handle: str
    ownerLogin: Annotated[str, Source("owner.login")]
    sessionId: Annotated[Uuid, Source("session.public_id")]
    routingName: Annotated[str | None, Source("session.shown_name")]
    name: str
    tagline: str
    description: str
    status: Literal["draft", "published"]
    access: Access
    online: bool
    concurrencyCap: int
    dailyBudgetQueries: Annotated[int, Source("daily_budget")]
    callerBudgetQueries: Annotated[int | None, Source("caller_budget")]
    waitS: int | None
    agentStyle: Literal["hybrid", "task-generating"]
    queriesToday: int
    queriesAllTime: int
    lastQueryAt: Time | None
    publishedAt: Time | None
    createdAt: Time
    isolated: bool
    callerApprovals: bool
    claudeMd: str | None
    personalizationPrompt: str | None
    liveView: bool
    publicAsk: bool
    liveViewEnabledAt: None
    suggestedPrompts: list[str]
    skills: list[ApiSkill]
    defaultInputModes: Annotated[list[str], Source("input_modes")]
    defaultOutputModes: Annotated[list[str], Source("output_modes")]
    maxBodyBytes: int | None
    queueing: ApiQueueing | None
    taskStore: Literal["memory", "journal"] | None
    remote: NotRequired[ApiRemote]
    allowedLogins: NotRequired[list[str]]
    callerBudgets: NotRequired[dict[str, int]]
    dailyCostLimitUsd: NotRequired[float | None]
    callerCostLimitUsd: NotRequired[float | None]
    costTodayUsd: NotRequired[float]


class PublishedAgent(ApiAgent):
    """A new agent. `restored`: a deleted one of the same handle came back, with its log."""

    restored: bool


def usd_field(source: str) -> serializers.DecimalField:
    """A limit in US dollars, or null."""
    return serializers.DecimalField(
        source=source,
        required=False,
        allow_null=True,
        coerce_to_string=False,
        max_digits=13,
        decimal_places=DECIMAL_PLACES,
        min_value=0,
        max_value=MAX_LIMIT_USD,
    )


class RemoteAuth(Body):
    """The value of the `Authorization` header that the hub sends to a remote A2A server."""

    scheme = serializers.CharField(max_length=MAX_SCHEME_CHARS)
    credentials = serializers.CharField(max_length=MAX_CREDENTIALS_CHARS, write_only=True)

    def validate(self, attrs: Json) -> Json:
        """As an Auth under the name `auth`."""
        try:
            return {"auth": make_auth(attrs["scheme"], attrs["credentials"])}
        except BadAuth as bad:
            raise serializers.ValidationError(str(bad)) from None


class RemotePlace(Body):
    """Where a remote A2A server is: its card's URL, or one above it; without `auth` the hub calls it unnamed.

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


class QueueingBody(Body):
    """How many A2A questions may wait for the agent while it is at work, and how long each."""

    max = serializers.IntegerField(min_value=1, max_value=MAX_QUEUE)
    waitS = serializers.IntegerField(required=False, default=QUEUE_WAIT_S, min_value=1, max_value=MAX_QUEUE_WAIT_S)
