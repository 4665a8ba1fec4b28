"""`/auth/oidc/{number}`: a browser signs in at an OpenID Connect provider."""

import logging

from django.http import Http404, HttpRequest, HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.browser import own_path, sign_in
from accounts.errors import Refused
from accounts.oauth import attempts, authorization_requests, oidc, provider_accounts
from accounts.oauth.attempts import browser_key, keep_key, sound_key
from accounts.oauth.shapes import OIDC_CALLBACK, OIDC_START
from accounts.oauth.views import PublicView, code_of, redirect_once, refused_page
from accounts.signup import Provider
from accounts.throttle import check_address
from kit.describe import ErrorBody

logger = logging.getLogger(__name__)

START_REFUSALS = (400, 404, 429, 502)
CALLBACK_REFUSALS = (400, 403, 404, 502)


class OidcStart(PublicView):
    """`/auth/oidc/{number}/start`"""

    @extend_schema(parameters=OIDC_START, responses={302: None} | dict.fromkeys(START_REFUSALS, ErrorBody))
    def get(self, request: Request, number: int) -> HttpResponse:
        """Off to the provider."""
        raw, provider = request._request, _provider(number)
        try:
            check_address(raw, "start")
            next_path = own_path(authorization_requests.one(raw.GET, "next"))
            browser = sound_key(raw)
            started = attempts.begin(browser, provider=provider.issuer, next_path=next_path)
            address = oidc.authorize_url(
                provider, state=started.state, verifier=started.verifier, nonce=started.nonce
            )
        except Refused as refused:
            return refused_page(raw, refused)
        response = redirect_once(address)
        keep_key(response, browser)
        return response


class OidcCallback(PublicView):
    """`/auth/oidc/{number}/callback`"""

    @extend_schema(parameters=OIDC_CALLBACK, responses={302: None} | dict.fromkeys(CALLBACK_REFUSALS, ErrorBody))
    def get(self, request: Request, number: int) -> HttpResponse:
        """Back from the provider: the browser is signed in, or learns why not."""
        raw, provider = request._request, _provider(number)
        try:
            return self._finish(raw, provider)
        except Refused as refused:
            logger.info("signin.refused", extra={"reason": refused.code, "issuer": provider.issuer})
            return refused_page(raw, refused)

    def _finish(self, request: HttpRequest, provider: Provider) -> HttpResponse:
        state, issuer = (
            authorization_requests.one(request.GET, "state"),
            authorization_requests.one(request.GET, "iss"),
        )
        attempt, started = attempts.finish_attempt(browser_key(request), state, provider=provider.issuer)
        code = code_of(request, provider.name)
        person = oidc.redeem(provider, code, verifier=started.verifier, nonce=started.nonce, issuer=issuer)
        user = provider_accounts.sign_in_oidc_user(person)
        response = redirect_once(own_path(attempt.next_path))
        sign_in(request, response, user)
        return response


def _provider(number: int) -> Provider:
    provider = oidc.find_provider(number)
    if provider is None:
        raise Http404
    return provider
