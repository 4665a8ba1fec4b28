"""The desk: pages on which owners manage their agents, sessions and alerts, and auditors of groups read audits."""

from django.http import Http404

from accounts.models import User
from agents.models import Agent


def get_own_agent(agent_id: int, owner: User) -> Agent:
    """An agent of this owner that is not deleted.

    Raises:
        Http404: the agent belongs to another user, was deleted, or never existed.
    """
    agents = Agent.objects.kept().owned_by(owner).select_related("owner", "session")
    agent: Agent | None = agents.filter(pk=agent_id).first()
    if agent is None:
        raise Http404
    return agent


def get_audited_agent(agent_id: int, owner: User) -> Agent:
    """An agent whose audit this user reads: an own one, or one of a group that the user maintains or audits.

    Raises:
        Http404: the audit is not the user's to read, or the agent was deleted or never existed.
    """
    audited = Agent.objects.audited_by(owner)
    if owner.acted_by is not None:  # the person may audit other groups, too
        audited |= Agent.objects.audited_by(owner.acted_by)
    agents = audited.select_related("owner", "session")
    agent: Agent | None = agents.filter(pk=agent_id).first()
    if agent is None:
        raise Http404
    return agent
