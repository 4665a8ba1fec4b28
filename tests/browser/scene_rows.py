"""The rows of a scene that its agents do not make; `scene.make_rows` calls these functions."""

from django.utils import timezone

from accounts.group_invitations import invite_to_group
from accounts.groups import add_member, create_group
from accounts.models import Membership
from accounts.tokens import get_or_create_local_user, mint_channel
from agents.models import Agent, CallerBudget
from tests.browser.network_rows import make_hostile, make_network
from tests.browser.team_rows import make_team
from tests.native.rows import make_agent, make_client_grant, make_turn

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
    _make_groups(slow)
    return {"proposal": str(make_team("captain")), "slow": str(slow.pk), **make_network("host")}


def _make_groups(limited: Agent) -> None:
    """A group of the owner with an agent, a budget, tokens and a link to join, and a group with nothing."""
    owner, alice = limited.owner, get_or_create_local_user("alice")
    team = create_group("data-team", "Data platform", made_by=owner)
    create_group("quiet-team", "Quiet", made_by=owner)
    add_member(team, alice, Membership.Role.AUDITOR, by=owner)
    add_member(team, get_or_create_local_user("bob"), by=owner)
    add_member(team, get_or_create_local_user("keeper"), Membership.Role.MAINTAINER, by=owner)
    make_agent(team.account, "pipelines", tagline="Says why a pipeline is late")
    CallerBudget.objects.create(agent=limited, caller=team.account, daily_budget=50)
    team.account.acted_by = owner
    mint_channel(team.account, "build server", user_agent="")
    invite_to_group(team, Membership.Role.MEMBER, by=owner)
