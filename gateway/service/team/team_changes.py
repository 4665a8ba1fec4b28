"""The changes of an owner to a team: agents, rules, and the connection of an agent."""

from typing import Any

from django.db import transaction

from accounts import quotas
from agents.core import presence
from agents.models import Connection
from gateway.models import TeamAgent, TeamPolicy
from gateway.models.team import MOST_PEERS_NAMED, MOST_VOTERS
from gateway.service.seats.seat import GATEWAY_LINK
from gateway.wire.frame_types import is_agent_name, is_target
from kit.names import NameRule

WANTED_NAME = "want lower-case letters, digits and hyphens"
PEERS = NameRule(is_target, WANTED_NAME, most=MOST_PEERS_NAMED, most_chars=160)
VOTERS = NameRule(is_agent_name, WANTED_NAME, most=MOST_VOTERS, most_chars=160)


def change_agent(agent: TeamAgent, fields: dict[str, Any]) -> bool:
    """Change a row; an agent that becomes inactive loses its connection within seconds. False: the row is gone."""
    if fields and not TeamAgent.objects.filter(pk=agent.pk).update(**fields):
        return False
    for name, value in fields.items():
        setattr(agent, name, value)
    if not agent.is_active:
        end_connection(agent.owner_id, agent.name)
    return True


def end_connection(owner_id: int, name: str) -> bool:
    """End the connection of an agent; False when it has none.

    Its row is removed. The process that holds the socket closes it within seconds, with `disconnect` and `error`,
    and the program comes back.
    """
    theirs = Connection.objects.filter(session__owner_id=owner_id, session__routing_name=name)
    found = theirs.filter(session__link=GATEWAY_LINK).values_list("pk", flat=True).first()
    if found is not None:
        presence.remove_connection(found)
    return found is not None


def get_policy(owner_id: int) -> TeamPolicy:
    """The rules of a team; the defaults, not stored, where its owner has set none."""
    return TeamPolicy.objects.filter(owner_id=owner_id).first() or TeamPolicy(owner_id=owner_id)


class BadPolicy(Exception):
    """The rules contradict each other; the text is public. Nothing was written."""


@transaction.atomic
def change_policy(owner_id: int, fields: dict[str, Any]) -> TeamPolicy:
    """Change rules of a team.

    Raises:
        BadPolicy: no agent is named that breaks ties, or it votes itself.
    """
    quotas.lock_owner(owner_id)
    policy = get_policy(owner_id)
    for name, value in fields.items():
        setattr(policy, name, value)
    if policy.breaks_ties and not policy.steward:
        raise BadPolicy("name the agent that breaks ties")
    if policy.breaks_ties and policy.steward in policy.members:
        raise BadPolicy("the agent that breaks ties cannot be a voter")
    policy.save()
    return policy
