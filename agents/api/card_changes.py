"""A changed card of a remote server: what differs, and the owner's decision."""

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.rest import Conflict, StrictJSONParser, caller_of
from agents.api.agents import get_own_agent
from agents.api.serializers import CardDecision, show_agent
from agents.api.shapes import ApiAgent, ApiCardChange
from agents.links.remote.approval import CARD_DECISIONS, ChangedCard, NotWaiting, find_changed_card
from agents.models import Agent, RemoteServer
from kit.describe import ErrorBody
from kit.iso import iso


class CardChange(APIView):
    """`/agents/{id}/card-change`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(responses={200: ApiCardChange, 404: ErrorBody})
    def get(self, request: Request, agent_id: int) -> Response:
        """What differs between the card by which the hub calls a remote server and the one it shows now."""
        _, _, changed = _find(agent_id, caller_of(request))
        return Response(_show(changed))

    @extend_schema(request=CardDecision, responses={200: ApiAgent, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, agent_id: int) -> Response:
        """Call the server by the changed card, or keep the approved one; 409 when it changed again meanwhile."""
        owner = caller_of(request)
        agent, server, _ = _find(agent_id, owner)
        body = CardDecision(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            CARD_DECISIONS[body.validated_data["decision"]](server, body.validated_data["digest"])
        except NotWaiting:
            raise Conflict("another card waits: look at it first") from None
        return Response(show_agent(agent, viewer_id=owner.pk))


def _find(agent_id: int, owner: User) -> tuple[Agent, RemoteServer, ChangedCard]:
    """An owner's agent whose server has a changed card; without one it is absent."""
    agent = get_own_agent(agent_id, owner)
    server = RemoteServer.objects.filter(session_id=agent.session_id).first()
    changed = find_changed_card(server) if server else None
    if server is None or changed is None:
        raise NotFound("no changed card waits")
    return agent, server, changed


def _show(changed: ChangedCard) -> ApiCardChange:
    return {
        "digest": changed.digest,
        "since": iso(changed.since),
        "asked": changed.is_asked,
        "changes": [{"path": one.path, "before": one.before, "after": one.after} for one in changed.changes.shown],
        "more": changed.changes.more,
    }
