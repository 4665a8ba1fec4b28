"""`request.user` from a Bearer token or the cookie `cw_session`."""

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import SimpleLazyObject

from accounts.authn import ForeignOrigin
from accounts.callers import check_own_pages, find_caller
from accounts.error_pages import FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT, is_api, json_error
from accounts.models import User


class CredentialMiddleware(AuthenticationMiddleware):
    """Sets `request.user` on first use, and refuses a cookie on an API request forged by another site.

    Pages keep Django's CSRF tokens; the API has none, so its guard is the origin.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:  # type: ignore[override]
        """Answer 403 before any view runs, or let the request pass."""
        if is_api(request):
            try:
                check_own_pages(request)
            except ForeignOrigin:
                return json_error(403, FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT)
        request.user = SimpleLazyObject(lambda: _user(request))  # type: ignore[assignment]
        return None


def _user(request: HttpRequest) -> User | AnonymousUser:
    caller = find_caller(request)
    return caller.user if caller else AnonymousUser()
