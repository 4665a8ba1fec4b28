"""What the hub itself answers: health, and the descriptions."""

from typing import Any, Literal, NotRequired, TypedDict

from kit.describe import JSON, Answer, Operation, Parameter

YAML = "application/yaml"


class Health(TypedDict):
    """Whether the process lives or can serve, and if not, why."""

    ok: bool
    database: NotRequired[str]
    draining: NotRequired[bool]
    starting: NotRequired[bool]


class Gone(TypedDict):
    """What everybody else gets."""

    error: str
    message: str


def _document(path: str, name: str, summary: str, *media_types: str, **more: Any) -> Operation:
    answers = {200: Answer(shape=dict[str, Any], text="The document.", media_types=media_types)}
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


OPERATIONS = (
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
            503: Answer(shape=Health, text="It starts or drains, or the database gave no answer in a second."),
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
            200: Answer(shape=str, text="Prometheus' text format.", media_types=("text/plain",)),
            404: Answer(shape=Gone, text="Not for who asks."),
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
