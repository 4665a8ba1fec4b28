"""`/auth/spa`: an app in a browser gets a token by its user's consent."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.shown import NO_STORE, user_agent_of
from accounts.callers import find_caller
from accounts.oauth import asked, codes
from accounts.oauth.bodies import CodeExchange
from accounts.oauth.codes import Purpose
from accounts.oauth.open import Open, field, sent_to
from accounts.oauth.queries import APP_START
from accounts.oauth.ways import check_any, find_ways
from accounts.shapes import ExchangedApp
from accounts.throttle import check_address
from kit.describe import ErrorBody
from kit.iso import iso_or_none


class SpaStart(Open):
    """`/auth/spa/start`"""

    @extend_schema(parameters=APP_START, responses={302: None, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> HttpResponse:
        """To the page where the user allows the app, signed in first where needed."""
        raw = request._request
        check_address(raw, "start")
        asked.read_app(raw.GET)
        consent = f"{reverse('consent')}?{raw.GET.urlencode()}"
        if find_caller(raw) is not None:
            return sent_to(consent)
        check_any()
        if find_ways().is_github_alone:
            return sent_to(f"{reverse('oauth-start')}?{urlencode({'next': consent})}")
        return sent_to(f"{reverse('signin')}?{urlencode({'next': consent})}")


class SpaExchange(Open):
    """`/auth/spa/exchange`"""

    @extend_schema(request=CodeExchange, responses={200: ExchangedApp, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """An app token for an app's code."""
        check_address(request._request, "exchange")
        code, verifier = field(request, "code"), field(request, "code_verifier")
        minted = codes.exchange(code, verifier, Purpose.APP, user_agent=user_agent_of(request))
        shown: ExchangedApp = {
            "token": minted.token,
            "tokenName": minted.credential.name,
            "expiresAt": iso_or_none(minted.credential.expires_at),
        }
        return Response(shown, headers=NO_STORE)
