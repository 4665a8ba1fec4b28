"""REST views of ratings: a caller's thumb for an answer, and the ratings of one agent for its owner."""

from typing import Any, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import TokenScope
from accounts.paging import PageQuery, page, read_query
from accounts.rest import Body, caller_of
from agents.api.agents import get_own_agent
from agents.core import ratings
from agents.core.figures import window_of
from agents.core.ratings import DOWN, UP, NoSuchAnswer, RatingSums, Thumb, word_of
from agents.models import Rating
from agents.models.rating import MAX_NOTE_CHARS
from kit.clock import db_now, iso
from kit.describe import ErrorBody, Page, Time

MAX_DAYS = 90
LISTED = 100


class ApiRating(TypedDict):
    """Your rating of an answer; `rating` and `ratedAt` are null without one."""

    id: str
    agent: str
    rating: Thumb | None
    note: str
    ratedAt: Time | None


class ReceivedRating(TypedDict):
    """A rating of an answer of your agent. `id`: of the ask; `question`: blank once its text is not kept."""

    id: str
    askerLogin: str
    question: str
    rating: Thumb | None
    note: str
    ratedAt: Time


class RatedDay(TypedDict):
    """The thumbs of one day in UTC, by the time when they were given or last changed."""

    day: str
    up: int
    all: int


class RatingOverview(TypedDict):
    """The ratings of an agent. `up` of `all` thumbs of all times; `days` lists the last days, the oldest first."""

    up: int
    all: int
    days: list[RatedDay]


class NewRating(Body):
    """The body of PUT."""

    rating = serializers.ChoiceField(choices=[UP, DOWN])
    note = serializers.CharField(default="", allow_blank=True, max_length=MAX_NOTE_CHARS)


class DaysQuery(serializers.Serializer[Any]):
    """The days to look back."""

    days = serializers.IntegerField(default=30, min_value=1, max_value=MAX_DAYS)


class AnswerRating(APIView):
    """`/questions/{id}/rating`"""

    scope = TokenScope.ASK

    @extend_schema(responses={200: ApiRating, 404: ErrorBody})
    def get(self, request: Request, chat_id: str) -> Response:
        """Your rating of an answer that you got; 404 for an ask of another caller, or without an answer."""
        return Response(self._show(request, chat_id))

    @extend_schema(request=NewRating, responses={200: ApiRating, 404: ErrorBody})
    def put(self, request: Request, chat_id: str) -> Response:
        """Give the answer a thumb, or change it. The agent's owner sees the thumb, the note and your login."""
        body = NewRating.read(request).validated_data
        try:
            ratings.rate(chat_id, caller_of(request).pk, is_good=body["rating"] == UP, note=body["note"])
        except NoSuchAnswer as absent:
            raise NotFound(str(absent)) from None
        return Response(self._show(request, chat_id))

    @extend_schema(responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, chat_id: str) -> Response:
        """Take the thumb away; nothing changes if there is none."""
        try:
            ratings.remove_rating(chat_id, caller_of(request).pk)
        except NoSuchAnswer as absent:
            raise NotFound(str(absent)) from None
        return Response(status=204)

    def _show(self, request: Request, chat_id: str) -> ApiRating:
        try:
            turn = ratings.get_answer(chat_id, caller_of(request).pk)
        except NoSuchAnswer as absent:
            raise NotFound(str(absent)) from None
        rating: Rating | None = getattr(turn, "rating", None)
        return {
            "id": turn.chat_id,
            "agent": turn.asked,
            "rating": word_of(rating),
            "note": rating.note if rating else "",
            "ratedAt": iso(rating.rated_at) if rating else None,
        }


class AgentRatings(APIView):
    """`/agents/{id}/ratings`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ReceivedRating])
    def get(self, request: Request, agent_id: int) -> Response:
        """The ratings of one of your agents, newest first."""
        agent = get_own_agent(agent_id, caller_of(request))

        def show(rows: Any) -> list[ReceivedRating]:
            return [
                {
                    "id": one.turn.chat_id,
                    "askerLogin": one.caller.login,
                    "question": one.turn.question,
                    "rating": word_of(one),
                    "note": one.note,
                    "ratedAt": iso(one.rated_at),
                }
                for one in rows
            ]

        return page(request, ratings.ratings_of(agent), show, most=LISTED)


class AgentRating(APIView):
    """`/agents/{id}/rating`"""

    @extend_schema(parameters=[DaysQuery], responses=RatingOverview)
    def get(self, request: Request, agent_id: int) -> Response:
        """How callers rated the answers of one of your agents, in all and on each day on which they did."""
        agent = get_own_agent(agent_id, caller_of(request))
        window = window_of(db_now(), read_query(DaysQuery, request)["days"], "UTC")
        sums, of_days = ratings.all_sums(agent), ratings.sums_by_day(agent, window)
        days = [of_days.get(day, RatingSums(0, 0)) for day in window.days]
        overview: RatingOverview = {
            "up": sums.good,
            "all": sums.all,
            "days": [
                {"day": day.isoformat(), "up": one.good, "all": one.all}
                for day, one in zip(window.days, days, strict=True)
                if one.all
            ],
        }
        return Response(overview)
