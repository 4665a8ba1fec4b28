"""The native API's calls on shared answers: of their owner, of those who may read them, and of a link.

Another user's share and an absent one give the same 404, as do links that ended, expired or never were.
`sharing.py` has the call that shares an answer.
"""

from typing import Any, TypedDict

import msgspec
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from a2a_bridge import settings
from a2a_bridge.models import AnswerShare
from a2a_bridge.service import shares
from a2a_bridge.surface.sharing import ApiAnswerShare, show_share
from accounts.paging import PageQuery, page
from accounts.rest import caller_of
from accounts.throttle import check_missed_links, count_missed_link
from kit.clock import iso
from kit.describe import ErrorBody, Page, Time, Url

NO_SHARE = "no such share: it is not for you, it has ended, or there was none"
NO_LINK = "the link shows nothing: it has ended or expired, or there was none"
LISTED = 100
NO_STORE = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


class ReceivedShare(TypedDict):
    """An answer that another user shows you. `title`: the beginning of the question."""

    id: int
    sharedBy: str
    agent: str
    title: str
    url: Url
    createdAt: Time
    expiresAt: Time


class SharedAnswer(TypedDict):
    """An answer with its question. `tasks`: tasks of A2A 1.0, without ids of the caller's, metadata and usage."""

    sharedBy: str
    agent: str
    title: str
    createdAt: Time
    expiresAt: Time
    tasks: list[dict[str, Any]]


def show_answer(share: AnswerShare) -> SharedAnswer:
    """What a share shows."""
    return {
        "sharedBy": share.owner.login,
        "agent": share.agent.handle,
        "title": share.title,
        "createdAt": iso(share.created_at),
        "expiresAt": iso(share.expires_at),
        "tasks": msgspec.json.decode(share.content),
    }


def page_url(share: AnswerShare) -> str:
    """The address of the page of a share without a link."""
    return f"{settings.PUBLIC_URL}/shared/{share.pk}"


class AnswerShares(APIView):
    """`/shares`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiAnswerShare])
    def get(self, request: Request) -> Response:
        """The answers that you share, newest first, without their links."""
        own = AnswerShare.objects.filter(owner=caller_of(request)).order_by("-pk").defer("content")

        def show(rows: Any) -> list[ApiAnswerShare]:
            shown = shares.find_shown(rows)
            return [
                show_share(one, None if one.digest else page_url(one), is_shown=one.pk in shown) for one in rows
            ]

        return page(request, own.select_related("agent", "user"), show, most=LISTED)


class ReceivedShares(APIView):
    """`/shares/received`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ReceivedShare])
    def get(self, request: Request) -> Response:
        """The answers that other users show you, by name or as one of all who are signed in, newest first."""
        received = shares.list_received(caller_of(request).pk)

        def show(rows: Any) -> list[ReceivedShare]:
            return [
                {
                    "id": one.pk,
                    "sharedBy": one.owner.login,
                    "agent": one.agent.handle,
                    "title": one.title,
                    "url": page_url(one),
                    "createdAt": iso(one.created_at),
                    "expiresAt": iso(one.expires_at),
                }
                for one in rows
            ]

        return page(request, received, show, most=LISTED)


class OneAnswerShare(APIView):
    """`/shares/{id}`"""

    @extend_schema(responses=SharedAnswer)
    def get(self, request: Request, share_id: int) -> Response:
        """The answer of a share of yours, or of one that you may read."""
        share = shares.find_shared(caller_of(request).pk, share_id)
        if share is None:
            raise NotFound(NO_SHARE)
        return Response(show_answer(share), headers=NO_STORE)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, share_id: int) -> Response:
        """End a share of yours: it shows the answer no longer, and its copy is deleted."""
        if not shares.end_share(caller_of(request).pk, share_id):
            raise NotFound(NO_SHARE)
        return Response(status=204)


class SharedLink(APIView):
    """`/shared-links/{token}`"""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @extend_schema(responses={200: SharedAnswer, 429: ErrorBody}, auth=[])
    def get(self, request: Request, token: str) -> Response:
        """The answer that a link shows; its token is the last part of the link.

        A client address that opens 10 links in a minute that show nothing gets 429 for every link until the minute
        is over.
        """
        check_missed_links(request._request)
        share = shares.find_by_link(token)
        if share is None:
            count_missed_link(request._request)
            raise NotFound(NO_LINK)
        return Response(show_answer(share), headers=NO_STORE)


urlpatterns = [
    path("shares", AnswerShares.as_view(), name="shares-api"),
    path("shares/received", ReceivedShares.as_view(), name="received-shares"),
    path("shares/<int:share_id>", OneAnswerShare.as_view(), name="share-api"),
    path("shared-links/<str:token>", SharedLink.as_view(), name="shared-link-api"),
]
