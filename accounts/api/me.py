"""The caller's own account."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.shown import api_user
from accounts.models import MAX_KEPT_DAYS, User
from accounts.rest import Body, caller_of
from accounts.settings import get_settings
from accounts.shapes import ApiUser, Kept


class Me(APIView):
    """Whose credential this is."""

    scope = None  # whatever it is for

    @extend_schema(responses=ApiUser)
    def get(self, request: Request) -> Response:
        """Whose credential this is."""
        return Response(api_user(caller_of(request)))


class RetentionBody(Body):
    """How long to keep questions; null: as long as the hub does."""

    questionsKeptDays = serializers.IntegerField(min_value=1, max_value=MAX_KEPT_DAYS, allow_null=True)


class Retention(APIView):
    """`/me/retention`"""

    @extend_schema(responses=Kept)
    def get(self, request: Request) -> Response:
        """How long the text of questions to the caller's agents is kept."""
        return Response(_kept(caller_of(request)))

    @extend_schema(request=RetentionBody, responses=Kept)
    def put(self, request: Request) -> Response:
        """Keep it for another time; what is older is blanked within hours."""
        body = RetentionBody(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller_of(request)
        user.questions_kept_days = body.validated_data["questionsKeptDays"]
        user.save(update_fields=["questions_kept_days"])
        return Response(_kept(user))


def _kept(user: User) -> Kept:
    return {
        "questionsKeptDays": user.questions_kept_days,
        "hubsQuestionsKeptDays": get_settings().questions_kept_days,
    }
