"""Finds the open asks of callers who may not ask the agent any more (docs/adr/0191)."""

from django.db.models import Exists, F, OuterRef, Q

from accounts.models import Membership
from agents.models import Agent, AgentGrant, QueuedAsk, Turn


def find_asks_without_access(home: str) -> list[str]:
    """The chat ids of a process's open turns and waiting asks whose agent is closed to their callers now.

    The agent is limited or private, and its owner, a grant or a group gives the caller no access.
    """
    groups = Membership.objects.asking().filter(user=OuterRef("caller"))
    has_grant = Exists(AgentGrant.objects.filter(agent=OuterRef("agent"), user=OuterRef("caller")))
    is_of_owner = Exists(groups.filter(group=OuterRef("agent__owner")))
    is_of_granted = Exists(groups.filter(group__account__agent_grants__agent=OuterRef("agent")))
    is_limited = Q(agent__access=Agent.Access.LIMITED)
    is_closed = Q(agent__isnull=False) & ~Q(agent__access=Agent.Access.PUBLIC) & ~Q(caller=F("agent__owner"))
    found: list[str] = []
    for asks in (Turn.objects.open_in(home), QueuedAsk.objects.filter(home=home)):
        closed = asks.filter(is_closed).exclude(is_of_owner)
        found += closed.exclude(is_limited & (has_grant | is_of_granted)).values_list("chat_id", flat=True)
    return found
