"""The REST answers of sessions and agents (docs/reference/rest.md), as types: the views build them."""

from typing import Annotated, Literal, NotRequired, TypedDict

from kit.describe import Time, Uuid
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
