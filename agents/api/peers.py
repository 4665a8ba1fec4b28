"""Whom the caller may reach: their own sessions, and those shared with them."""

from typing import TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import caller_of
from agents.api.sessions import most_listed
from agents.core.targets import Peer, peers_of
from kit.describe import Items, Uuid


class ApiPeer(TypedDict):
    """A session as a peer; `mine`: the caller owns it."""

    routingName: str
    ownerLogin: str
    mine: bool
    sessionId: Uuid
    cwd: str | None
    online: bool


class Peers(APIView):
    """`/peers`"""

    @extend_schema(responses=Items[ApiPeer])
    def get(self, request: Request) -> Response:
        """Sessions the caller may see, own ones first; as many as `/sessions` lists."""
        peers = peers_of(caller_of(request).pk, most=most_listed())
        return Response({"items": [show_peer(peer) for peer in peers]})


def show_peer(peer: Peer) -> ApiPeer:
    """ApiPeer of the native API."""
    return {
        "routingName": f"@{peer.session.routing_name}",
        "ownerLogin": peer.session.owner.login,
        "mine": peer.is_mine,
        "sessionId": str(peer.session.public_id),
        "cwd": peer.session.cwd or None,
        "online": peer.is_online,
    }
