"""All that Django REST framework does not serve: the tables of each room, and what the hub itself answers."""

from typing import Any, Literal

from django.conf import settings

from a2a_bridge.surface.described import OPERATIONS as A2A
from a2a_bridge.surface.my_questions.rest import OPERATIONS as QUESTIONS
from agents.links.channel.events import OPERATIONS as HOOKS
from agents.links.channel.protocol import SOCKET as CHANNEL
from agnt.endpoint.metadata import OPERATIONS as AGNT
from gateway.surface.health import OPERATIONS as GATEWAY
from hub.monitoring.endpoints import Health, PageGone
from kit.describe import JSON, DescribedAnswer, Operation, Parameter, Socket
from mcp_server.surface.metadata import OPERATIONS as MCP
from openai_api.surface.metadata import OPERATIONS as CHAT
from operators.surface.rest import OPERATIONS as OPERATORS
from operators.wire.frames import SOCKET as CLI

YAML = "application/yaml"


def _document(path: str, name: str, summary: str, *media_types: str, **more: Any) -> Operation:
    answers = {200: DescribedAnswer(shape=dict[str, Any], text="The document.", media_types=media_types)}
    return Operation(
        method="get",
        path=path,
        name=name,
        summary=summary,
        tag="descriptions",
        security=(),
        answers=answers,
        **more,
    )


_OF_HUB = (
    Operation(
        method="get",
        path="/livez",
        name="isAlive",
        summary="Whether the process answers at all.",
        tag="health",
        security=(),
        answers={200: Health},
    ),
    Operation(
        method="get",
        path="/readyz",
        name="isReady",
        summary="Whether the database answers and the process takes new work.",
        tag="health",
        security=(),
        answers={
            200: Health,
            503: DescribedAnswer(
                shape=Health, text="It starts or drains, or the database gave no answer in a second."
            ),
        },
    ),
    Operation(
        method="get",
        path="/metrics",
        name="getMetrics",
        summary="Figures for Prometheus: from this machine, or with METRICS_TOKEN as Bearer token.",
        tag="health",
        security=(),
        answers={
            200: DescribedAnswer(shape=str, text="Prometheus' text format.", media_types=("text/plain",)),
            404: DescribedAnswer(shape=PageGone, text="Not for who asks."),
        },
    ),
    _document(
        "/api/v1/schema",
        "getSchema",
        "This description, OpenAPI 3.1.",
        JSON,
        YAML,
        parameters=[Parameter(name="format", shape=Literal["json", "yaml"], text="instead of the header Accept")],
        adds_errors=False,
    ),
    _document("/api/ws-docs/json", "getSocketsAsJson", "The sockets, AsyncAPI 3.0.", JSON),
    _document("/api/ws-docs/yaml", "getSocketsAsYaml", "The sockets, AsyncAPI 3.0, as YAML.", YAML),
)


_OF_AGNT = AGNT if settings.AGNT else ()
OPERATIONS: tuple[Operation, ...] = (
    *(*A2A, *MCP, *CHAT, *QUESTIONS, *HOOKS, *OPERATORS, *GATEWAY),
    *(*_OF_AGNT, *_OF_HUB),
)
SOCKETS: tuple[Socket, ...] = (CHANNEL, CLI)
