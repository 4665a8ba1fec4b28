"""The endpoint as the hub's description has it, and whether an answer is one of those that it names."""

import httpx
import jsonschema

from agnt.endpoint.metadata import OPERATIONS
from hub.descriptions.openapi import Writer
from lab.frames import Json

_writer = Writer()
DESCRIBED: dict[str, Json] = {one.path: _writer.operation(one) for one in OPERATIONS}
COMPONENTS = _writer.components
OWN_HEADERS = ("x-ratelimit-", "x-a2a-")
OTHER_HEADERS = ("retry-after", "www-authenticate", "idempotent-replay")
RESPONSES = {
    "network.ping": "AgntPingResponse",
    "venue.list": "AgntListResponse",
    "booking.search": "AgntSearchResponse",
    "booking.confirm": "AgntConfirmResponse",
    "booking.status": "AgntStatusResponse",
    "booking.cancel": "AgntCancelResponse",
}


def check_described(answer: httpx.Response) -> None:
    """Fail unless the description names the answer's status, its headers, and the shape of its body."""
    path = answer.request.url.path.rstrip("/")
    described = DESCRIBED[path]["responses"][str(answer.status_code)]
    named = {name.lower() for name in described.get("headers", {})}
    sent = {name for name in answer.headers if name.startswith(OWN_HEADERS) or name in OTHER_HEADERS}
    assert sent <= named, (answer.status_code, sent - named)
    schema: Json = described["content"]["application/json"]["schema"]
    body = answer.json()
    if answer.status_code == 200 and body.get("from") == "network:agnt":  # no agent answered
        schema = {"$ref": f"#/components/schemas/{RESPONSES[body['intent']]}"}
    check_shape(schema, body)


def check_shape(schema: Json, value: object) -> None:
    """Fail unless a value is of a shape of the description."""
    whole = schema | {"components": {"schemas": COMPONENTS}}
    jsonschema.Draft202012Validator(whole).validate(value)  # tests/descriptions checks the schemas
