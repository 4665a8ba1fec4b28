"""What changes about an agent by the minute, for a whole page of agents at once."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from agents.core.directory import last_asked_at, usage_all_time, usage_today
from agents.models import Agent
from agents.models.reachable import online_sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """An agent's state now. `last_query_at`: when it was last asked and not refused."""

    is_online: bool
    queries_today: int
    queries_all_time: int
    last_query_at: datetime | None


def facts_of(agents: Collection[Agent]) -> dict[int, Facts]:
    """Their facts by agent id, in the same four queries however many they are."""
    ids = [agent.pk for agent in agents]
    online = online_sessions({agent.session_id for agent in agents})
    today, ever, last = usage_today(ids), usage_all_time(ids), last_asked_at(ids)
    return {
        agent.pk: Facts(
            is_online=agent.session_id in online,
            queries_today=today.get(agent.pk, 0),
            queries_all_time=ever.get(agent.pk, 0),
            last_query_at=last.get(agent.pk),  # type: ignore[arg-type]
        )
        for agent in agents
    }
