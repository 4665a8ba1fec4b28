"""Finds an agent to ask: tags, the order of lists, favourites, and the agents that a user asked lately."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, Q, TextField
from django.db.models.functions import Cast

from accounts.models import User
from agents import limits
from agents.models import Agent, Favourite, Turn
from agents.models.agent import AgentQuerySet

BY_HANDLE = "handle"
# `rate`: by thumbs; of agents without good ones, those that answer most often first.
ORDERS: Mapping[str, Sequence[Any]] = {
    "use": (F("rank__asks").desc(nulls_last=True),),
    "rate": (F("rank__rating_score").desc(nulls_last=True), F("rank__answered_percent").desc(nulls_last=True)),
    "latency": (F("rank__latency_ms").asc(nulls_last=True),),
}
MAX_COUNTED = 5000  # agents whose tags are counted
MAX_TAGS_SHOWN = 20
MAX_TURNS_READ = 200
RECENT = 6


def sort_agents(agents: AgentQuerySet, order: str) -> AgentQuerySet:
    """Agents in one of the `ORDERS`, equal ones by handle; as they are for any other order."""
    if order == BY_HANDLE:
        return agents.order_by("handle_key")
    return agents.order_by(*ORDERS[order], "handle_key") if order in ORDERS else agents


def has_tag(tag: str) -> Q:
    """The condition that an agent has a tag, which contains nothing but letters, digits and hyphens."""
    written = Agent.objects.alias(written=Cast("tags", TextField()))
    return Q(pk__in=written.filter(written__contains=f'"{tag}"').values("pk"))


def count_tags(agents: AgentQuerySet) -> list[tuple[str, int]]:
    """The most frequent tags of agents, each with its number of agents."""
    tagged = agents.exclude(tags=[]).order_by("-pk").values_list("tags", flat=True)[:MAX_COUNTED]
    counts: Counter[str] = Counter(tag for tags in tagged for tag in tags)
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:MAX_TAGS_SHOWN]


def find_favourites(user_id: int | None) -> Q:
    """The condition that an agent is a favourite of a user."""
    return Q(pk__in=Favourite.objects.filter(user=user_id).values("agent"))


def favourites_among(agents: Iterable[Agent], user_id: int | None) -> Collection[int]:
    """The keys of these agents that are favourites of a user."""
    if user_id is None:
        return frozenset()
    ids = [agent.pk for agent in agents]
    return frozenset(Favourite.objects.filter(user=user_id, agent__in=ids).values_list("agent", flat=True))


@transaction.atomic
def add_favourite(user: User, agent: Agent) -> None:
    """Mark an agent; a repeated call changes nothing.

    Raises:
        QuotaExceeded: the user has as many favourites as an account may have.
    """
    if not Favourite.objects.filter(user=user, agent=agent).exists():
        limits.FAVOURITES.check(user.pk)
        Favourite.objects.get_or_create(user=user, agent=agent)


def remove_favourite(user: User, agent: Agent) -> None:
    """Remove the mark; a repeated call changes nothing."""
    Favourite.objects.filter(user=user, agent=agent).delete()


def recent_agents(user_id: int | None) -> list[Agent]:
    """The agents that a user asked last and may still ask, the last one first."""
    if user_id is None:
        return []
    asked = Turn.objects.asked_by(user_id).order_by("-asked_at", "-pk").values_list("agent_id", flat=True)
    ids = list(dict.fromkeys(asked[:MAX_TURNS_READ]))
    found = {agent.pk: agent for agent in Agent.objects.askable_by(user_id).filter(pk__in=ids)}
    return [found[pk] for pk in ids if pk in found][:RECENT]
