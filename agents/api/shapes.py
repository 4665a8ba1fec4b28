"""The JSON of agents (docs/reference/rest.md), and parts of the request bodies that change agents."""

from typing import Annotated, Literal, NotRequired, TypedDict

from rest_framework import serializers

from accounts.rest import Body
from agents.api.remote import ApiRemote
from agents.models.agent import (
    MAX_LIMIT_USD,
    MAX_QUEUE,
    MAX_QUEUE_WAIT_S,
    QUEUE_WAIT_S,
)
from kit.describe import Time, Uuid
from kit.money import DECIMAL_PLACES, MICRO
from kit.rows import Always, RowSource

Access = Literal["public", "limited", "private"]


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
    """The number of questions that may wait for an agent, and the seconds for each."""

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
    ownerLogin: Annotated[str, RowSource("owner.login")]
    sessionId: Annotated[Uuid, RowSource("session.public_id")]
    routingName: Annotated[str | None, RowSource("session.shown_name")]
    name: str
    tagline: str
    description: str
    tags: list[str]
    status: Literal["draft", "published"]
    access: Access
    online: Annotated[bool, RowSource("activity.is_online")]
    concurrencyCap: int
    dailyBudgetQueries: Annotated[int, RowSource("daily_budget")]
    callerBudgetQueries: Annotated[int | None, RowSource("caller_budget")]
    waitS: int | None
    agentStyle: Literal["hybrid", "task-generating"]
    queriesToday: Annotated[int, RowSource("activity.queries_today")]
    queriesAllTime: Annotated[int, RowSource("activity.queries_all_time")]
    lastQueryAt: Annotated[Time | None, RowSource("activity.last_query_at")]
    publishedAt: Time | None
    createdAt: Time
    isolated: bool
    callerApprovals: bool
    callerSharing: bool
    claudeMd: str | None
    personalizationPrompt: str | None
    liveView: Annotated[bool, Always(False)]
    publicAsk: Annotated[bool, Always(False)]
    liveViewEnabledAt: None
    suggestedPrompts: list[str]
    skills: list[ApiSkill]
    defaultInputModes: Annotated[list[str], RowSource("input_modes")]
    defaultOutputModes: Annotated[list[str], RowSource("output_modes")]
    maxBodyBytes: int | None
    queueing: ApiQueueing | None
    taskStore: Literal["memory", "journal"] | None
    remote: NotRequired[ApiRemote]
    allowedLogins: NotRequired[list[str]]
    callerBudgets: NotRequired[dict[str, int]]
    dailyCostLimitUsd: NotRequired[Annotated[float | None, RowSource("daily_limit_microusd", MICRO)]]
    callerCostLimitUsd: NotRequired[Annotated[float | None, RowSource("caller_limit_microusd", MICRO)]]
    costTodayUsd: NotRequired[Annotated[float, RowSource("activity.cost_today_microusd", MICRO)]]


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


class QueueingBody(Body):
    """The number of A2A questions that may wait while the agent is at work, and the seconds for each."""

    max = serializers.IntegerField(min_value=1, max_value=MAX_QUEUE)
    waitS = serializers.IntegerField(required=False, default=QUEUE_WAIT_S, min_value=1, max_value=MAX_QUEUE_WAIT_S)
