"""The rows of a scene that its agents do not make; `scene.make_rows` calls these functions."""

from django.utils import timezone

from accounts.tokens import get_or_create_local_user
from agents.models import Agent
from tests.browser.network_rows import make_hostile, make_network
from tests.browser.team_rows import make_team
from tests.native.rows import make_client_grant, make_turn

__all__ = ["make_hostile", "make_scene"]
SLOWEST_MS = (23 * 3600 + 59 * 60) * 1000


def make_scene() -> dict[str, str]:
    """A team, a network, and an agent with a large budget that answered slowly; the ids that paths hold.

    Alice has a client that stays signed in, and one that the hub signed out.
    """
    slow = Agent.objects.get(handle="owner/librarian")
    Agent.objects.filter(pk=slow.pk).update(daily_budget=99999)
    make_turn(slow, slow.owner, latency_ms=SLOWEST_MS)
    alice, now = get_or_create_local_user("alice"), timezone.now()
    make_client_grant(alice, app_name="Coding agent", refreshed_at=now)
    make_client_grant(alice, app_name="Copied agent", revoked_at=now, reused_at=now)
    return {"proposal": str(make_team("captain")), "slow": str(slow.pk), **make_network("host")}
