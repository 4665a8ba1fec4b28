"""REST views of the agents that the caller marked."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page
from accounts.rest import caller_of, check_no_fields, get_one
from agents.core.shopping import add_favourite, remove_favourite
from agents.models import Agent, Favourite
from kit.describe import ErrorBody, Page, Time
from kit.rows import RowSource, show

NO_AGENT = "no such agent"


class ApiFavourite(TypedDict):
    """An agent that the caller marked."""

    handle: Annotated[str, RowSource("agent.handle")]
    name: Annotated[str, RowSource("agent.name")]
    tagline: Annotated[str, RowSource("agent.tagline")]
    markedAt: Annotated[Time, RowSource("created_at")]


class Favourites(APIView):
    """`/favourites`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiFavourite])
    def get(self, request: Request) -> Response:
        """The agents that the caller marked and may ask, by handle."""
        caller = caller_of(request)
        askable = Agent.objects.askable_by(caller.pk).values("pk")
        own = Favourite.objects.filter(user=caller, agent__in=askable).select_related("agent")
        return page(request, own.order_by("agent__handle_key"), _show)


class OneFavourite(APIView):
    """`/favourites/{owner}/{slug}`"""

    @extend_schema(request=None, responses={204: None, 404: ErrorBody})
    def put(self, request: Request, owner: str, slug: str) -> Response:
        """Mark an agent that the caller may ask. Again is fine."""
        check_no_fields(request)
        add_favourite(caller_of(request), _get(request, owner, slug))
        return Response(status=204)

    @extend_schema(responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, owner: str, slug: str) -> Response:
        """Remove the mark. Again is fine."""
        remove_favourite(caller_of(request), _get(request, owner, slug))
        return Response(status=204)


def _get(request: Request, owner: str, slug: str) -> Agent:
    askable = Agent.objects.askable_by(caller_of(request).pk).at(f"{owner}/{slug}")
    return get_one(askable, NO_AGENT)


def _show(rows: Sequence[Favourite]) -> list[ApiFavourite]:
    return [show(ApiFavourite, one) for one in rows]
