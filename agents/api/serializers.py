"""The bodies of the REST calls of agents and sessions, checked field by field, and the JSON of their answers."""

from collections.abc import Sequence
from decimal import Decimal

from rest_framework import serializers

from accounts.models import User
from accounts.rest import Body
from agents.api.shapes import ApiAgent, ApiRemote
from agents.core.card_settings import (
    EDITABLE,
    MAX_SKILLS,
    SkillBody,
    checked_modes,
    checked_skills,
    modes,
    prompts,
)
from agents.core.directory import (
    AgentActivity,
    UnknownLogin,
    get_users_by_login,
    load_agent_activity,
    load_caller_budgets,
    load_granted_logins,
)
from agents.links.remote.access import MAX_CREDENTIALS_CHARS, BadAuth, make_auth
from agents.links.remote.approval import CARD_DECISIONS
from agents.links.remote.signatures import BadKey, read_keys, thumbprint
from agents.models import Agent, RemoteServer
from agents.models.agent import (
    MAX_BUDGET,
    MAX_LIMIT_USD,
    MAX_NAMED_CALLERS,
    MAX_QUEUE,
    MAX_QUEUE_WAIT_S,
    QUEUE_WAIT_S,
)
from agents.models.remote import MAX_SCHEME_CHARS, MAX_URL_CHARS
from agents.transcript.pieces import Json
from kit.clock import db_now, iso_or_none
from kit.columns import ColumnBody
from kit.money import DECIMAL_PLACES, MICRO, to_microusd
from kit.rows import show

NOT_OFFERED = "this hub does not offer it yet"
LEFT_OUT: Json = {  # of the answers that do not show them: null, or absent
    **dict.fromkeys(("claudeMd", "personalizationPrompt")),
    **dict.fromkeys(("remote", "allowedLogins", "callerBudgets"), ""),
    **dict.fromkeys(("dailyCostLimitUsd", "callerCostLimitUsd", "costTodayUsd"), ""),
}


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


class AgentChanges(Body, ColumnBody):
    """The body of PATCH: any subset."""

    suggestedPrompts = prompts("suggested_prompts")
    skills = serializers.ListField(required=False, max_length=MAX_SKILLS, child=SkillBody())
    defaultInputModes = modes("input_modes")
    defaultOutputModes = modes("output_modes")
    allowedLogins = serializers.ListField(
        source="allowed", required=False, max_length=MAX_NAMED_CALLERS, child=serializers.CharField(max_length=64)
    )
    callerBudgets = serializers.DictField(
        source="budgets", required=False, child=serializers.IntegerField(min_value=0, max_value=MAX_BUDGET)
    )
    dailyCostLimitUsd = usd_field("daily_limit_microusd")
    callerCostLimitUsd = usd_field("caller_limit_microusd")
    queueing = QueueingBody(required=False, allow_null=True)
    liveView = serializers.BooleanField(required=False, write_only=True)
    publicAsk = serializers.BooleanField(required=False, write_only=True)

    class Meta:
        model, columns, shape = Agent, EDITABLE, ApiAgent

    def validate_allowedLogins(self, logins: list[str]) -> list[User]:
        """The users of these logins."""
        try:
            return get_users_by_login(logins)
        except UnknownLogin as unknown:
            raise serializers.ValidationError(str(unknown)) from None

    def validate_callerBudgets(self, budgets: dict[str, int]) -> dict[User, int]:
        """By user; of a login in several cases the last one holds."""
        if len(budgets) > MAX_NAMED_CALLERS:
            raise serializers.ValidationError(f"want at most {MAX_NAMED_CALLERS} logins")
        by_key = {login.lower(): budget for login, budget in budgets.items()}
        return {user: by_key[user.login.lower()] for user in self.validate_allowedLogins(list(by_key))}

    def validate_dailyCostLimitUsd(self, usd: Decimal | None) -> int | None:
        """In millionths."""
        return None if usd is None else to_microusd(usd)

    validate_callerCostLimitUsd = validate_dailyCostLimitUsd

    def validate_skills(self, skills: list[Json]) -> list[Json]:
        """With ids that differ."""
        return checked_skills(skills)

    def validate_defaultInputModes(self, modes: list[str]) -> list[str]:
        """Each once, and one of them such that every caller of A2A can send it."""
        return checked_modes(modes)

    def validate_defaultOutputModes(self, modes: list[str]) -> list[str]:
        """Each once, and one of them such that a caller of A2A can take it."""
        return checked_modes(modes)

    def validate(self, attrs: Json) -> Json:
        """Take out what only has to be false, and spread what is two columns."""
        if "queueing" in attrs:
            chosen = attrs.pop("queueing")
            attrs["queue_max"] = chosen["max"] if chosen else 0
            attrs["queue_wait_s"] = chosen["waitS"] if chosen else QUEUE_WAIT_S
        for later in ("liveView", "publicAsk"):
            if attrs.pop(later, False):
                raise serializers.ValidationError({later: NOT_OFFERED})
        return attrs


class NewAgent(AgentChanges):
    """The body of POST: either the session that is published, or the remote A2A server."""

    sessionId = serializers.UUIDField(required=False)
    slug = serializers.CharField(required=False, allow_null=True, max_length=64)
    remote = RemotePlace(required=False)

    def validate(self, attrs: Json) -> Json:
        """One of the two."""
        if ("sessionId" in attrs) == ("remote" in attrs):
            raise serializers.ValidationError({"sessionId": "want either sessionId or remote"})
        return super().validate(attrs)


class ChangedAgent(AgentChanges):
    """The body of PATCH; `sessionId` moves the agent to another session of its owner, `remote` moves a remote
    A2A server. The slug is fixed at publishing.
    """

    sessionId = serializers.UUIDField(required=False, write_only=True)
    slug = serializers.CharField(required=False, allow_null=True, max_length=64, write_only=True)

    remote = RemoteChanges(required=False)


def show_agents(agents: Sequence[Agent], *, viewer_id: int, with_papers: bool = True) -> list[ApiAgent]:
    """ApiAgents, whatever their number in the same few queries; owner and session come with the rows.

    Whom an agent is limited to, callers' own budgets, and costs are told to its owner alone. `with_papers`: with
    the two long texts of the owner.
    """
    facts = load_agent_activity(agents)
    own = [agent for agent in agents if agent.owner_id == viewer_id]
    ids = [agent.pk for agent in own]
    granted, budgets = load_granted_logins(ids), load_caller_budgets(ids)
    remote = RemoteServer.objects.in_bulk([agent.session_id for agent in own], field_name="session_id")
    now = db_now() if remote else None
    shown = []
    for agent in agents:
        given: Json = {**LEFT_OUT}
        if with_papers:
            given |= {"claudeMd": agent.claude_md, "personalizationPrompt": agent.personalization_prompt}
        if agent.pk in granted:
            given["allowedLogins"], given["callerBudgets"] = granted[agent.pk], budgets[agent.pk]
            given["dailyCostLimitUsd"] = _usd(agent.daily_limit_microusd)
            given["callerCostLimitUsd"] = _usd(agent.caller_limit_microusd)
            given["costTodayUsd"] = _usd(facts[agent.pk].cost_today_microusd)
        if now and (server := remote.get(agent.session_id)):
            keys = [thumbprint(key) for key in server.card_keys]
            given["remote"] = show(ApiRemote, server, breaker=server.breaker(now), cardKeys=keys)
        shown.append(_show(agent, facts[agent.pk], given))
    return shown


def show_agent(agent: Agent, *, viewer_id: int) -> ApiAgent:
    """One ApiAgent."""
    return show_agents([agent], viewer_id=viewer_id)[0]


def _show(agent: Agent, activity: AgentActivity, given: Json) -> ApiAgent:
    return show(
        ApiAgent,
        agent,
        online=activity.is_online,
        queriesToday=activity.queries_today,
        queriesAllTime=activity.queries_all_time,
        lastQueryAt=iso_or_none(activity.last_query_at),
        liveView=False,
        publicAsk=False,
        liveViewEnabledAt=None,
        queueing={"max": agent.queue_max, "waitS": agent.queue_wait_s} if agent.queue_max else None,
        **given,
    )


def _usd(microusd: int | None) -> float | None:
    return None if microusd is None else microusd / MICRO
