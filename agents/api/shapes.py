"""What sessions and agents answer over REST (docs/reference/rest.md), as types: the views build them."""

from typing import Literal, NotRequired, TypedDict

from kit.describe import Time, Uuid

RoleWord = Literal["owner", "approver", "prompter", "viewer"]
Access = Literal["public", "limited", "private"]
Style = Literal["hybrid", "task-generating"]
TaskStoreKind = Literal["memory", "journal"]


class ApiSession(TypedDict):
    """A running or past agent. The last five fields are for clients that look for them."""

    id: Uuid
    routingName: str | None
    startedByLogin: str
    role: RoleWord
    host: str | None
    cwd: str | None
    channelVersion: str | None
    startedAt: Time
    lastSeenAt: Time
    archivedAt: Time | None
    connected: bool
    agentHandle: str | None
    managedBy: None
    autoStart: bool
    autoEnter: bool
    extraFlags: list[str]
    preserveSessionId: bool


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
    cardKeys: list[str]
    tellsCaller: bool


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
    asked: bool
    changes: list[ApiCardMember]
    more: int


class ApiCard(TypedDict):
    """An agent card as the hub understands it. `url`: where it was found; `callUrl`: where it is called."""

    url: str
    name: str
    description: str
    version: str
    skills: list[str]
    callUrl: str
    protocolVersion: Literal["1.0", "0.3"]
    protocolBinding: Literal["JSONRPC", "HTTP+JSON"]
    streaming: bool


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
    """A published session, or the draft of one. `allowedLogins`, `callerBudgets` and `remote` are
    there for its owner alone.

    `remote` only where the agent is a remote A2A server.
    `waitS`: seconds it may take for callers who stream or do not wait; null: the hub's own limit. `skills`,
    `defaultInputModes`, `defaultOutputModes`, `maxBodyBytes`: empty or null where the hub's own hold.
    """

    id: int
    handle: str
    ownerLogin: str
    sessionId: Uuid
    routingName: str | None
    name: str
    tagline: str
    description: str
    status: Literal["draft", "published"]
    access: Access
    allowedLogins: NotRequired[list[str]]
    callerBudgets: NotRequired[dict[str, int]]
    remote: NotRequired[ApiRemote]
    online: bool
    concurrencyCap: int
    dailyBudgetQueries: int
    callerBudgetQueries: int | None
    waitS: int | None
    agentStyle: Style
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
    defaultInputModes: list[str]
    defaultOutputModes: list[str]
    maxBodyBytes: int | None
    taskStore: TaskStoreKind | None
    queueing: ApiQueueing | None


class PublishedAgent(ApiAgent):
    """A new agent. `restored`: a deleted one of the same handle came back, with its log."""

    restored: bool


class ApiHalt(TypedDict):
    """Who stands still, by whom and why; `liftedAt` is null as long as they do.

    `name`: the agent's handle, or the login of the owner or caller. `madeBy` is null for the command line.
    """

    id: int
    kind: Literal["agent", "owner", "caller"]
    name: str
    reason: str
    byStaff: bool
    madeBy: str | None
    madeAt: Time
    liftedBy: str | None
    liftedAt: Time | None


class ApiBlock(TypedDict):
    """A caller whom the owner does not answer."""

    login: str
    createdAt: Time


class Unblocked(TypedDict):
    """`removed`: 1, or 0 when there was no block."""

    ok: Literal[True]
    login: str
    removed: int


class Window(TypedDict):
    """How far an audit looks back."""

    days: int
    since: Time


class Sums(TypedDict):
    """Sums over a window's ended asks; whatever did not complete was denied."""

    total: int
    ok: int
    denied: int
    avgLatencyMs: int | None
    distinctAskers: int


class ThreadStats(TypedDict):
    """Anonymous threads, which this hub does not offer yet."""

    total: int
    today: int
    active: int


class Asker(TypedDict):
    """One of those who asked most."""

    login: str
    count: int
    lastAt: Time


class Asked(TypedDict):
    """One ask. `routeId` is null for a refusal, `latencyMs` unless it completed, `traceId` for old asks."""

    ts: Time
    askerLogin: str
    ok: bool
    latencyMs: int | None
    question: str
    routeId: str | None
    deniedReason: str | None
    traceId: str | None


class InboundLog(TypedDict):
    """The audit of one agent."""

    agent: ApiAgent
    window: Window
    summary: Sums
    publicThreadStats: ThreadStats
    topAskers: list[Asker]
    recent: list[Asked]
