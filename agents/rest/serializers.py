"""What comes in over REST, checked field by field, and what goes out as JSON."""

from collections.abc import Sequence
from typing import Any, cast

from rest_framework import serializers

from accounts.models import User
from agents.facts import Facts, facts_of
from agents.granting import UnknownLogin, logins_granted, users_named
from agents.models import Agent, Session
from agents.models.agent import MAX_BUDGET, MAX_CAP, MAX_PAPER_CHARS, MAX_WAIT_S
from agents.rest.shapes import Access, ApiAgent, Style
from kit.iso import iso, iso_or_none

Json = dict[str, Any]
MAX_GRANTS = 200
NOT_OFFERED = "this hub does not offer it yet"


def _paper(source: str) -> serializers.CharField:
    return serializers.CharField(
        source=source,
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=MAX_PAPER_CHARS,
        trim_whitespace=False,
    )


class AgentChanges(serializers.Serializer[Any]):
    """The body of PATCH: any subset; unknown fields are ignored."""

    name = serializers.CharField(max_length=120)
    tagline = serializers.CharField(required=False, max_length=160, allow_blank=True)
    description = serializers.CharField(required=False, max_length=4096, allow_blank=True, trim_whitespace=False)
    status = serializers.ChoiceField(required=False, choices=Agent.Status.choices)
    access = serializers.ChoiceField(required=False, choices=Agent.Access.choices)
    allowedLogins = serializers.ListField(
        source="allowed", required=False, max_length=MAX_GRANTS, child=serializers.CharField(max_length=64)
    )
    dailyBudgetQueries = serializers.IntegerField(
        source="daily_budget", required=False, min_value=0, max_value=MAX_BUDGET
    )
    concurrencyCap = serializers.IntegerField(
        source="concurrency_cap", required=False, min_value=1, max_value=MAX_CAP
    )
    waitS = serializers.IntegerField(
        source="wait_s", required=False, allow_null=True, min_value=1, max_value=MAX_WAIT_S
    )
    agentStyle = serializers.ChoiceField(source="agent_style", required=False, choices=Agent.Style.choices)
    isolated = serializers.BooleanField(required=False)
    suggestedPrompts = serializers.ListField(
        source="suggested_prompts", required=False, max_length=6, child=serializers.CharField(max_length=400)
    )
    claudeMd = _paper("claude_md")
    personalizationPrompt = _paper("personalization_prompt")
    liveView = serializers.BooleanField(required=False, write_only=True)
    publicAsk = serializers.BooleanField(required=False, write_only=True)

    def validate_allowedLogins(self, logins: list[str]) -> list[User]:
        """The users of these logins."""
        try:
            return users_named(logins)
        except UnknownLogin as unknown:
            raise serializers.ValidationError(str(unknown)) from None

    def validate(self, attrs: Json) -> Json:
        """Take out what only has to be false."""
        for later in ("liveView", "publicAsk"):
            if attrs.pop(later, False):
                raise serializers.ValidationError({later: NOT_OFFERED})
        return attrs


class NewAgent(AgentChanges):
    """The body of POST."""

    sessionId = serializers.UUIDField()
    slug = serializers.CharField(required=False, allow_null=True, max_length=64)


def show_agents(agents: Sequence[Agent], *, viewer_id: int) -> list[ApiAgent]:
    """ApiAgents, whatever their number in the same few queries; owner and session come with the rows.

    Whom an agent is limited to is told to its owner alone.
    """
    facts = facts_of(agents)
    granted = logins_granted([agent.pk for agent in agents if agent.owner_id == viewer_id])
    return [_show(agent, facts[agent.pk], granted.get(agent.pk)) for agent in agents]


def show_agent(agent: Agent, *, viewer_id: int) -> ApiAgent:
    """One ApiAgent."""
    return show_agents([agent], viewer_id=viewer_id)[0]


def _show(agent: Agent, facts: Facts, allowed: list[str] | None) -> ApiAgent:
    shown: ApiAgent = {
        "id": agent.pk,
        "handle": agent.handle,
        "ownerLogin": agent.owner.login,
        "sessionId": str(agent.session.public_id),
        "routingName": routing_name(agent.session),
        "name": agent.name,
        "tagline": agent.tagline,
        "description": agent.description,
        "status": "published" if agent.status == Agent.Status.PUBLISHED else "draft",
        "access": cast(Access, agent.access),
        "online": facts.is_online,
        "concurrencyCap": agent.concurrency_cap,
        "dailyBudgetQueries": agent.daily_budget,
        "waitS": agent.wait_s,
        "agentStyle": cast(Style, agent.agent_style),
        "queriesToday": facts.queries_today,
        "queriesAllTime": facts.queries_all_time,
        "lastQueryAt": iso_or_none(facts.last_query_at),
        "publishedAt": iso_or_none(agent.published_at),
        "createdAt": iso(agent.created_at),
        "isolated": agent.isolated,
        "claudeMd": agent.claude_md,
        "personalizationPrompt": agent.personalization_prompt,
        "liveView": False,
        "publicAsk": False,
        "liveViewEnabledAt": None,
        "suggestedPrompts": agent.suggested_prompts,
    }
    if allowed is not None:
        shown["allowedLogins"] = allowed
    return shown


def routing_name(session: Session) -> str | None:
    """The name of a session as clients write it."""
    return f"@{session.routing_name}" if session.routing_name else None
