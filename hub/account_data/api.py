"""REST calls by which users export their account, or erase it."""

from django.http import StreamingHttpResponse
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.groups import find_maintained
from accounts.rest import Conflict, HasBrowserSession, caller_of
from agents.api.files import AnyType
from hub.account_data.erasure import CannotClose, close
from hub.account_data.export import MEDIA_TYPE, export_of
from kit.describe import ErrorBody

LOGIN_TYPED = OpenApiParameter(
    "login", str, required=True, description="Your own login, so that it is no accident."
)
SLUG_TYPED = OpenApiParameter(
    "slug", str, required=True, description="The slug of the group, so that it is no accident."
)


class Export(APIView):
    """`/me/export`"""

    permission_classes = [HasBrowserSession]
    content_negotiation_class = AnyType

    @extend_schema(responses={(200, MEDIA_TYPE): bytes, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> StreamingHttpResponse:
        """All data of the caller in this hub, as lines of JSON."""
        return export_of(request, caller_of(request), caller_of(request).pk)


class Account(APIView):
    """`/me/account`"""

    permission_classes = [HasBrowserSession]

    @extend_schema(parameters=[LOGIN_TYPED], responses={204: None, 400: ErrorBody, 409: ErrorBody})
    def delete(self, request: Request) -> Response:
        """Erase the account: from now on its tokens are refused; its rows are gone within minutes."""
        user = caller_of(request)
        if request.query_params.get("login") != user.login:
            raise ValidationError({"login": "want your own login, to be sure"})
        try:
            close(user.pk)
        except CannotClose as cannot:
            raise Conflict(str(cannot)) from None
        return Response(status=204)


class GroupAccount(APIView):
    """`/groups/{slug}/account`"""

    permission_classes = [HasBrowserSession]

    @extend_schema(parameters=[SLUG_TYPED], responses={204: None, 400: ErrorBody, 409: ErrorBody})
    def delete(self, request: Request, group_slug: str) -> Response:
        """Delete a group that the caller maintains, with all that it owns; its rows are gone within minutes."""
        group = find_maintained(caller_of(request), group_slug)
        if group is None:
            raise NotFound("you are in no group of this name")
        if request.query_params.get("slug") != group.slug:
            raise ValidationError({"slug": "want the slug of the group, to be sure"})
        try:
            close(group.pk)
        except CannotClose as cannot:
            raise Conflict(str(cannot)) from None
        return Response(status=204)


urlpatterns = [
    path("me/export", Export.as_view(), name="export"),
    path("groups/<str:group_slug>/account", GroupAccount.as_view(), name="group-account-rest"),
    path("me/account", Account.as_view(), name="account-rest"),
]
