"""`/scim/v2`: lets the identity provider in by the hub's SCIM token, and only then loads what answers it."""

import hmac

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils.module_loading import import_string
from django.views.decorators.csrf import csrf_exempt

from accounts.authn import digest
from accounts.scim_tokens import find_live_token, touch
from kit.sql import DATABASE_UNAVAILABLE

ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
MEDIA_TYPE = "application/scim+json"
BEARER = "bearer "
ANSWER = "accounts.scim.views.answer"  # loads the library of SCIM (docs/adr/0163)
OFF = "this hub has no SCIM: its operator makes a token with manage.py scim_token"
UNAUTHORIZED = "send the hub's SCIM token as Authorization: Bearer"
UNAVAILABLE = "the hub's database is out of reach or takes no writes; nothing was done, try again shortly"


@csrf_exempt
def scim(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Respond to the identity provider: 404 if the hub has no SCIM token, 401 without that token."""
    try:
        token = find_live_token()
        if token is None:
            return scim_error(404, OFF)
        given = request.headers.get("Authorization", "")
        text = given[len(BEARER) :].strip() if given.lower().startswith(BEARER) else ""
        if not hmac.compare_digest(digest(text), token.digest):
            refused = scim_error(401, UNAUTHORIZED)
            refused["WWW-Authenticate"] = "Bearer"
            return refused
        touch(token)
        answered: HttpResponse = import_string(ANSWER)(request, rest, token)
        return answered
    except DATABASE_UNAVAILABLE:
        return scim_error(503, UNAVAILABLE)


def scim_error(status: int, detail: str, scim_type: str = "") -> HttpResponse:
    """An error response of SCIM (RFC 7644, section 3.12)."""
    body = {"schemas": [ERROR], "status": str(status), "detail": detail}
    return JsonResponse(
        body | ({"scimType": scim_type} if scim_type else {}), status=status, content_type=MEDIA_TYPE
    )


urlpatterns = [path("scim/v2", scim, name="scim-root"), path("scim/v2/<path:rest>", scim, name="scim")]
