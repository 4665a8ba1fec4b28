"""`/mcp` for the hub's public description."""

from typing import Any, Literal, NotRequired, TypedDict

from kit.describe import CALLER, Answer, Operation, Parameter
from mcp_server.endpoint import METADATA_PATH, PATH


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


def _failure(text: str) -> Answer:
    return Answer(shape=McpAnswer, text=text)


def _metadata(path: str, name: str) -> Operation:
    return Operation(
        method="get",
        path=path,
        name=name,
        summary="Where clients of /mcp sign in.",
        tag="mcp",
        security=(),
        answers={
            200: Answer(shape=ProtectedResource, text="The metadata."),
            304: Answer(text="The reader's copy holds (`If-None-Match`)."),
        },
    )


OPERATIONS = (
    Operation(
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
            200: Answer(shape=McpAnswer, streams=McpAnswer, text="The answer."),
            202: Answer(text="A notification was taken."),
            400: _failure("The message is not sound, or of a version that is not spoken here."),
            401: _failure("No live token came with it; WWW-Authenticate says where to get one."),
            403: _failure("The cookie came from another site."),
            404: _failure("There is no such method."),
            406: Answer(shape=McpAnswer, text="Want Accept: application/json, text/event-stream."),
            408: _failure("The body did not come in time."),
            413: _failure("The body is over the limit."),
            415: _failure("Want Content-Type: application/json."),
            503: _failure("The hub takes no requests right now."),
        },
    ),
    _metadata(METADATA_PATH, "getProtectedResource"),
    _metadata(f"{METADATA_PATH}{PATH}", "getMcpProtectedResource"),
)
