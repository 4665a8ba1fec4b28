"""The desk: pages on which owners manage their agents, sessions and alerts."""

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
