"""The descriptions of `/mcp` for programs: where to sign in (RFC 9728), and its part of the public description."""

from typing import Any, Literal, NotRequired, TypedDict

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from a2a_bridge import settings
from a2a_bridge.surface.documents import allow_cross_origin, answer_document, describe_document, encode
from kit.describe import CALLER, COMMON_FAILURES, DescribedAnswer, DescribedOperation, Parameter, describe_failures
from mcp_server.surface.endpoint import METADATA_PATH, PATH, SCOPES


@csrf_exempt
@allow_cross_origin
def protected_resource(request: HttpRequest) -> HttpResponse:
    """`/.well-known/oauth-protected-resource`, and the same with the path of the resource behind it."""
    public_url = settings.PUBLIC_URL
    shown = {
        "resource": f"{public_url}{PATH}",
        "authorization_servers": [public_url],
        "scopes_supported": SCOPES,
        "bearer_methods_supported": ["header"],
        "resource_name": "Clawbridge",
        "resource_documentation": f"{public_url}/docs/use-from-mcp",
    }
    return answer_document(request, shown, lambda: encode(shown), "application/json")


urlpatterns = [
    path(METADATA_PATH.removeprefix("/"), protected_resource, name="protected-resource"),
    path(f"{METADATA_PATH.removeprefix('/')}{PATH}", protected_resource, name="mcp-protected-resource"),
]


class McpMessage(TypedDict):
    """A request of MCP, or without `id` a notification; see the specification of MCP for methods and params."""

    jsonrpc: Literal["2.0"]
    method: str
    id: NotRequired[str | int]
    params: NotRequired[dict[str, Any]]


class McpFault(TypedDict):
    """Code and sentence of an error of MCP."""

    code: int
    message: str
    data: NotRequired[Any]


class McpAnswer(TypedDict):
    """A result, or an error of the protocol. A tool's refusal is a result with `isError`."""

    jsonrpc: Literal["2.0"]
    id: NotRequired[str | int | None]
    result: NotRequired[dict[str, Any]]
    error: NotRequired[McpFault]


class ProtectedResource(TypedDict):
    """Metadata of a protected resource (RFC 9728)."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str]
    bearer_methods_supported: list[str]
    resource_name: str
    resource_documentation: str


_FAILURES = {status: COMMON_FAILURES[status] for status in (403, 408, 413, 415)} | {
    400: "The message is not sound, or of a version that is not spoken here.",
    401: "No live token came with it; WWW-Authenticate says where to get one.",
    404: "There is no such method.",
    406: "Want Accept: application/json, text/event-stream.",
    503: "The hub takes no requests right now.",
}


def _describe_metadata(path: str, name: str) -> DescribedOperation:
    answer = DescribedAnswer(shape=ProtectedResource, text="The metadata.")
    summary = "Where clients of /mcp sign in."
    return describe_document(path, name, summary, answer, tag="mcp", validators="`If-None-Match`")


OPERATIONS = (
    DescribedOperation(
        method="post",
        path=PATH,
        name="sendMcpMessage",
        summary="Ask agents as tools: Streamable HTTP of MCP, without sessions.",
        text="One message in, one answer or a stream of events out. Tools and errors are in the reference of MCP.",
        tag="mcp",
        security=CALLER,
        request=McpMessage,
        parameters=[
            Parameter(name="agents", shape=Literal["tools"], text="`tools`: each agent is a tool of its own, too.")
        ],
        adds_errors=False,
        answers={
            200: DescribedAnswer(shape=McpAnswer, streams=McpAnswer, text="The answer."),
            202: DescribedAnswer(text="A notification was taken."),
            **describe_failures(McpAnswer, _FAILURES),
        },
    ),
    _describe_metadata(METADATA_PATH, "getProtectedResource"),
    _describe_metadata(f"{METADATA_PATH}{PATH}", "getMcpProtectedResource"),
)
