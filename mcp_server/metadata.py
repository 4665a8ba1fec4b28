"""How clients that only know the address of `/mcp` find out where to sign in (RFC 9728)."""

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from a2a_bridge.documents import allow_cross_origin, encode, not_modified, weak_etag, with_validators
from a2a_bridge.settings import get_settings
from mcp_server.endpoint import METADATA_PATH, PATH, SCOPES


@csrf_exempt
@allow_cross_origin
def protected_resource(request: HttpRequest) -> HttpResponse:
    """`/.well-known/oauth-protected-resource`, and the same with the path of the resource behind it."""
    public_url = get_settings().public_url
    shown = {
        "resource": f"{public_url}{PATH}",
        "authorization_servers": [public_url],
        "scopes_supported": SCOPES,
        "bearer_methods_supported": ["header"],
        "resource_name": "Clawbridge",
        "resource_documentation": f"{public_url}/llms.txt",
    }
    etag = weak_etag(shown)
    answer = not_modified(request, etag) or HttpResponse(encode(shown), content_type="application/json")
    return with_validators(answer, etag)


urlpatterns = [
    path(METADATA_PATH.removeprefix("/"), protected_resource, name="protected-resource"),
    path(f"{METADATA_PATH.removeprefix('/')}{PATH}", protected_resource, name="mcp-protected-resource"),
]
