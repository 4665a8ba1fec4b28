"""What the staff is shown, as types: the views build them."""

from typing import Any, Literal, TypedDict

from agents.api.shapes import Access
from kit.describe import Page, Time, Uuid

Bucket = Literal["hour", "day"]


class UserCounts(TypedDict):
    """How many users there are, and how many of them are new."""

    total: int
    last7d: int
    last30d: int


class SessionCounts(TypedDict):
    """How many sessions there were ever, and how many are connected now."""

    totalEver: int
    currentlyConnected: int
    startedLast24h: int


class DayAndWeek(TypedDict):
    """Counts of the last 24 hours and the last 7 days."""

    last24h: int
    last7d: int


class PermissionCounts(TypedDict):
    """Permission requests that wait, and those decided or expired lately."""

    pending: int
    resolvedLast24h: int


class TopAgent(TypedDict):
    """One of the agents asked most in 7 days."""

    handle: str
    count: int


class Dispatches(DayAndWeek):
    """Asks of agents that were not refused."""

    topAgents: list[TopAgent]


class UploadCounts(TypedDict):
    """Files uploaded lately, deleted ones too, and what all blobs take."""

    last7d: int
    bytesStored: int


class DeliveryCounts(TypedDict):
    """Webhook deliveries queued lately, and how they ended."""

    last24h: int
    succeededLast24h: int
    failedLast24h: int


class WeekCount(TypedDict):
    """A count of the last 7 days."""

    last7d: int


class HubOverview(TypedDict):
    """The hub in numbers."""

    users: UserCounts
    sessions: SessionCounts
    events: DayAndWeek
    permissionRequests: PermissionCounts
    agentDispatches: Dispatches
    fileUploads: UploadCounts
    webhookDeliveries: DeliveryCounts
    opMessages: WeekCount
    generatedAt: Time


class Point(TypedDict):
    """How much happened in the hour or day that begins at `ts`."""

    ts: Time
    count: int


class Timeseries(TypedDict):
    """One metric over time; the last point is still growing."""

    metric: str
    window: str
    bucket: Bucket
    points: list[Point]
    generatedAt: Time


class ActiveUser(TypedDict):
    """One of the users whose sessions had most events."""

    userId: int
    githubLogin: str
    sessionCount: int
    eventsLast7d: int


class ActiveUsers(TypedDict):
    """The busiest first."""

    users: list[ActiveUser]
    limit: int


class ListedSession(TypedDict):
    """Anybody's session. `managedByMachineId` is for clients that look for it."""

    id: Uuid
    ownerLogin: str
    routingName: str | None
    cwd: str | None
    host: str | None
    startedAt: Time
    lastSeenAt: Time
    archivedAt: Time | None
    managedByMachineId: None
    connected: bool
    shareCount: int
    agentHandle: str | None


class TimelineEntry(TypedDict):
    """An event, or a permission request as it stands now."""

    kind: Literal["event", "permission"]
    ts: Time
    data: dict[str, Any]


class ListedTimeline(TypedDict):
    """The newest part of a session's history, oldest first."""

    items: list[TimelineEntry]
    sessionId: Uuid
    sessionRoute: str | None
    ownerLogin: str


class ListedShare(TypedDict):
    """Anybody's share."""

    id: int
    sessionId: Uuid
    sessionRoute: str | None
    subjectLogin: str
    grantorLogin: str
    role: str
    createdAt: Time


class ListedAgent(TypedDict):
    """Anybody's agent, drafts and deleted ones too."""

    id: int
    handle: str
    ownerLogin: str
    tagline: str
    isolated: bool
    liveView: bool
    publicAsk: bool
    access: Access
    sessionRoute: str | None
    online: bool
    status: str
    deletedAt: Time | None
    dailyBudgetQueries: int
    concurrencyCap: int
    createdAt: Time


class ListedToken(TypedDict):
    """Anybody's channel or app token."""

    id: int
    kind: str
    name: str
    prefix: str
    userId: int
    userLogin: str
    createdAt: Time
    lastUsedAt: Time | None
    revokedAt: Time | None
    active: bool
    appName: str | None
    machineId: str | None


class ListedTokens(Page[ListedToken]):
    """A page of tokens; `returned`: how many are in it."""

    returned: int


class ListedUser(TypedDict):
    """Anybody, in snake_case."""

    id: int
    github_login: str
    avatar_url: str | None
    is_admin: bool
    is_service: bool
    identities: list[str]
    github_id: int | None
    created_at: Time
