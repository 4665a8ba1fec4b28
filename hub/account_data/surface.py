"""Pages and REST calls by which users export their account, or erase it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import Caller
from accounts.browser import sign_out
from accounts.oauth.pages import require_caller
from accounts.rest import Conflict, HasBrowserSession, caller_of
from agents.api.files import AnyType
from hub.account_data.erasure import CannotClose, close
from hub.account_data.export import MEDIA_TYPE, export_of
from kit.describe import ErrorBody

GONE = "@{login} is erased. Its tokens are refused from now on; the last of its rows goes within minutes."
WRONG_LOGIN = "This is not the login of this account."


@never_cache
@require_safe
@require_caller
def export(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """The data of the signed-in user, as a file."""
    return export_of(request, caller.user, caller.user.pk)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@require_caller
def erase(request: HttpRequest, caller: Caller) -> HttpResponse:
    """The page about erasing; a POST with the login, typed, erases."""
    me = caller.user
    if request.method != "POST":
        return render(request, "erase.html", {"me": me})
    if request.POST.get("login", "").strip().removeprefix("@") != me.login:
        return render(request, "erase.html", {"me": me, "error": WRONG_LOGIN}, status=400)
    try:
        close(me.pk)
    except CannotClose as cannot:
        return render(request, "erase.html", {"me": me, "error": f"{str(cannot).capitalize()}."}, status=409)
    response = HttpResponseRedirect(reverse("home"))
    sign_out(request, response)
    messages.success(request, GONE.format(login=me.login))
    return response


page_urlpatterns = [
    path("account/export", export, name="account-export"),
    path("account/erase", erase, name="account-erase"),
]


LOGIN_TYPED = OpenApiParameter(
    "login", str, required=True, description="Your own login, so that it is no accident."
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


rest_urlpatterns = [
    path("me/export", Export.as_view(), name="export"),
    path("me/account", Account.as_view(), name="account-rest"),
]
