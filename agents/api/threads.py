"""Anonymous threads of an agent, which this hub does not offer: there are none."""

from typing import Any, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import caller_of
from agents.api.agents import get_own_agent
from agents.api.paging import read_query
from agents.api.shapes import ThreadStats


class AgentThreads(TypedDict):
    """The threads of an agent: none."""

    summary: ThreadStats
    items: list[dict[str, Any]]


class ThreadQuery(serializers.Serializer[Any]):
    """Which threads."""

    limit = serializers.IntegerField(default=50, min_value=1, max_value=200)
    status = serializers.ChoiceField(required=False, choices=["active", "capped", "closed", "soft_deleted"])


class Threads(APIView):
    """`/agents/{id}/threads`"""

    @extend_schema(parameters=[ThreadQuery], responses=AgentThreads)
    def get(self, request: Request, agent_id: int) -> Response:
        """Anonymous threads of one of the caller's agents: none."""
        get_own_agent(agent_id, caller_of(request))
        read_query(ThreadQuery, request)
        answer: AgentThreads = {"summary": {"total": 0, "today": 0, "active": 0}, "items": []}
        return Response(answer)
