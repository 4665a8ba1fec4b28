"""The native API's calls on the letters of the caller's own team. Others' and absent ones are the same 404."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Conflict, caller_of, check_no_fields, get_one
from gateway.models import Letter
from gateway.service.letters.inbox import delete_letter, retry_letter
from gateway.service.letters.letters import WAITING, show_frame
from kit.describe import ErrorBody, Page, Time
from kit.rows import Source, show

MAX_NAME_CHARS = 80
State = Literal["queued", "delivered", "read", "dead"]
Priority = Literal["critical", "high", "normal", "low"]
STATES: Sequence[State] = ("queued", "delivered", "read", "dead")


class ApiLetter(TypedDict):
    """A message that was stored for an agent. `expiresAt` null: it waits for ever. `reason`: why it died."""

    id: int
    agent: Annotated[str, Source("recipient.routing_name")]
    sender: str
    messageId: str
    priority: Priority
    state: State
    reason: str | None
    wantsResponse: bool
    bytes: int
    receivedAt: Time
    expiresAt: Time | None
    deliveredAt: Time | None
    readAt: Time | None


class ApiLetterDetail(ApiLetter):
    """A letter with the content and the metadata of its message."""

    content: dict[str, Any]
    metadata: dict[str, Any]


class LetterQuery(PageQuery):
    """Which letters to list."""

    state = serializers.ChoiceField(required=False, choices=STATES, source="state__in")
    agent = serializers.CharField(required=False, max_length=MAX_NAME_CHARS, source="recipient__routing_name")

    def validate_state(self, state: State) -> Collection[str]:
        """The states of the rows that have this one."""
        return WAITING if state == "queued" else [state]


def _show(one: Letter) -> ApiLetter:
    state = "queued" if one.state in WAITING else one.state
    return show(ApiLetter, one, priority=one.get_priority_display().lower(), state=state)


class Letters(APIView):
    """`/team/letters`"""

    @extend_schema(parameters=[LetterQuery], responses=Page[ApiLetter])
    def get(self, request: Request) -> Response:
        """The letters of your team, newest first; `state` and `agent` (a name) take only those."""
        found = Letter.objects.filter(owner=caller_of(request), **read_filters(LetterQuery, request))
        newest_first = found.select_related("recipient").order_by("-pk")
        return page(request, newest_first, lambda rows: [_show(one) for one in rows], LetterQuery)


class OneLetter(APIView):
    """`/team/letters/{letterId}`"""

    @extend_schema(responses=ApiLetterDetail)
    def get(self, request: Request, letter_id: int) -> Response:
        """One letter with what it says."""
        letter = _get_own(letter_id, caller_of(request))
        carried = show_frame(letter.envelope)
        shown: ApiLetterDetail = {
            **_show(letter),
            "content": carried["content"],
            "metadata": carried["metadata"],
        }
        return Response(shown)

    @extend_schema(responses={204: None, 409: ErrorBody})
    def delete(self, request: Request, letter_id: int) -> Response:
        """Delete it; 409 while it is being delivered. The sender of one that waits gets an error."""
        if not delete_letter(_get_own(letter_id, caller_of(request))):
            raise Conflict("it is being delivered at this moment")
        return Response(status=204)


class LetterRetry(APIView):
    """`/team/letters/{letterId}/retry`"""

    @extend_schema(request=None, responses={202: ApiLetter, 400: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, letter_id: int) -> Response:
        """Let a dead letter wait again, without an end; its sender waits for no reply any more."""
        letter = _get_own(letter_id, caller_of(request))
        check_no_fields(request)
        if not retry_letter(letter):
            raise Conflict("only a dead letter is sent again")
        letter.refresh_from_db()
        return Response(_show(letter), status=202)


def _get_own(letter_id: int, owner: User) -> Letter:
    own = Letter.objects.filter(owner=owner, pk=letter_id)
    return get_one(own.select_related("recipient", "sender_session"), "no such letter")


urlpatterns = [
    path("team/letters", Letters.as_view(), name="team-letters"),
    path("team/letters/<int:letter_id>", OneLetter.as_view(), name="team-letter"),
    path("team/letters/<int:letter_id>/retry", LetterRetry.as_view(), name="team-letter-retry"),
]
