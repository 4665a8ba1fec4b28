"""What a scene has in its database beside what its agents do; `scene.make_rows` calls these functions."""

from agents.models import Agent
from tests.browser.network_rows import make_hostile, make_network
from tests.browser.team_rows import make_team
from tests.native.rows import make_turn

__all__ = ["make_hostile", "make_scene"]
SLOWEST_MS = (23 * 3600 + 59 * 60) * 1000


def make_scene() -> dict[str, str]:
    """A team, a network, and an agent with a large budget that answered slowly; the ids that paths hold."""
    slow = Agent.objects.get(handle="owner/librarian")
    Agent.objects.filter(pk=slow.pk).update(daily_budget=99999)
    make_turn(slow, slow.owner, latency_ms=SLOWEST_MS)
    return {"proposal": str(make_team("captain")), "slow": str(slow.pk), **make_network("host")}
