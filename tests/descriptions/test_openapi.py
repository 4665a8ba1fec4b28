"""Every call is described, and the description is sound."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
from django.test import Client
from drf_spectacular import validation
from schemathesis import openapi as schemathesis

from a2a_bridge.surface.addresses import ADDRESSES
from a2a_bridge.surface.addresses import OPERATIONS as HTTP_JSON
from a2a_bridge.surface.asgi import split
from a2a_bridge.surface.described import ASK
from accounts.api.sign_in import CLI_START
from accounts.api.token_endpoint import APP_START
from accounts.error_responses import API_PATHS
from clawbridge import VERSION
from hub.descriptions import openapi as written
from hub.descriptions.openapi import OPERATIONS, openapi
from tests.descriptions.seeded import NOT_OFFERED
from tests.routes import routes

Json = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
IN_BRACES = re.compile(r"\{\w+\}")
HIDDEN_STATUSES = {"500"}
EMPTY_ANSWER_OF_MCP = (("/mcp", "post"), "202")
WITH_A_CODE_FOR_500 = {"sendEnvelope", "getAgntStatus", "listVenuesOfKey"}  # `internal_error`, of AGNT's own table


def callbacks() -> Iterator[tuple[str, Any]]:
    """The addresses as the description writes them, and the view of each."""
    return ((re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path), pattern.callback) for path, pattern in routes())


def served() -> set[tuple[str, str]]:
    """Path and method of every call Django serves; a plain view answers what its decorator lets through: GET."""
    found = set()
    for path, callback in callbacks():
        if path.startswith(API_PATHS):
            view = getattr(callback, "cls", None)
            names = {name for name in METHODS if hasattr(view, name)} if view else {"get"}
            found |= {(path, name) for name in names}
    return found


@cache
def described() -> dict[tuple[str, str], Json]:
    return {(path, method): one for path, item in openapi()["paths"].items() for method, one in item.items()}


def test_every_route_is_described_and_nothing_else() -> None:
    elsewhere = {(one.path, one.method) for one in OPERATIONS}
    assert len(served()) > 20
    assert served() <= described().keys()
    assert described().keys() == served() | elsewhere


def test_every_rest_view_lies_where_a_cookie_of_another_site_is_refused() -> None:
    """DRF views are exempt from CSRF; the check of `Origin` covers the paths of the API alone."""
    views = {path for path, callback in callbacks() if hasattr(callback, "cls")}
    assert len(views) > 20
    assert [path for path in views if not path.startswith(API_PATHS)] == []


def test_what_asgi_serves_before_django_is_described() -> None:
    assert ASK.method == "post"
    assert split(ASK.path.format(owner="alice", slug="helper")) == ("alice/helper", "")


def test_every_address_of_http_json_is_described_and_nothing_else() -> None:
    told = {(IN_BRACES.sub("{}", one.path.partition("{slug}/")[2]), one.method.upper()) for one in HTTP_JSON}
    there = {(IN_BRACES.sub("{}", one.path), verb) for one in ADDRESSES for verb in one.calls}
    assert told == there


def test_threads_that_want_it_at_once_get_one_document() -> None:
    written._document.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        documents = list(pool.map(lambda _: openapi(), range(4)))
    assert all(document is documents[0] for document in documents)


def test_the_document_is_valid_openapi() -> None:
    assert openapi()["openapi"].startswith("3.1.")
    specification = json.loads(Path(validation.__file__).with_name("openapi_3_1_schema.json").read_text())
    jsonschema_rs.validate(specification, json.loads(json.dumps(openapi())))
    loaded = schemathesis.from_dict(openapi())
    assert sum(1 for one in loaded.get_all_operations() if one.ok()) == len(described())


def test_every_component_is_a_sound_json_schema() -> None:
    components = openapi()["components"]["schemas"]
    assert {"ApiAgent", "ApiSession", "ErrorBody"} <= components.keys()
    for schema in components.values():
        jsonschema_rs.meta.validate(schema)


def test_every_reference_leads_somewhere() -> None:
    found = set(re.findall(r"'#/components/schemas/([^']+)'", repr(openapi())))
    assert found <= openapi()["components"]["schemas"].keys()


def test_its_version_is_that_of_the_hub() -> None:
    assert openapi()["info"]["version"] == VERSION


def test_operation_ids_are_unique() -> None:
    names = [one["operationId"] for one in described().values()]
    assert len(names) == len(set(names))


def test_every_call_says_what_it_does_and_every_answer_when() -> None:
    faults = {" ".join(call): found for call, one in described().items() if (found := list(_faults_of_texts(one)))}
    assert not faults


def _faults_of_texts(call: Json) -> Iterator[str]:
    summary, answers = call["summary"], call["responses"]
    if not summary.endswith((".", "none")) or len(summary) >= 120:
        yield f"its summary is no short sentence: {summary}"
    if not call["tags"]:
        yield "it has no tag"
    yield from (f"{status} has no description" for status, one in answers.items() if not one["description"])
    if HIDDEN_STATUSES & answers.keys() and call["operationId"] not in WITH_A_CODE_FOR_500:
        yield "it describes a status that callers are not told of"
    if not any(status < "400" for status in answers) and call["operationId"] not in NOT_OFFERED:
        yield "it never succeeds"


def test_every_answer_but_an_empty_one_has_a_shape() -> None:
    answers = [
        (call, status, one) for call, item in described().items() for status, one in item["responses"].items()
    ]
    filled = [one for one in answers if one[1] not in {"204", "302", "304"} and one[:2] != EMPTY_ANSWER_OF_MCP]
    assert len(filled) > len(described())
    assert not [one[:2] for one in filled if not one[2].get("content")]
    assert not [one[:2] for one in filled if not all(media["schema"] for media in one[2]["content"].values())]


def test_errors_follow_from_the_form_of_a_call() -> None:
    assert described()["/api/v1/me", "get"]["responses"].keys() == {"200", "401", "403", "406"}
    publish = described()["/api/v1/agents", "post"]["responses"]
    assert {"400", "401", "403", "404", "409", "413", "415"} <= publish.keys()
    assert publish["409"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorBody"}
    by_session = described()["/api/v1/auth-sessions", "get"]["responses"]
    assert "403" in by_session


def test_credentials_are_named() -> None:
    schemes = openapi()["components"]["securitySchemes"]
    assert schemes["cookie"]["name"] == "cw_session"
    assert described()["/api/v1/me", "get"]["security"] == [{"bearer": []}, {"cookie": []}]
    assert described()["/api/channel/event", "post"]["security"] == [{"channelToken": []}]
    assert "security" not in described()["/api/v1/auth/oauth/token", "post"]


def test_the_queries_of_the_starts_are_those_that_are_read() -> None:
    from_code = {"redirect_uri", "state", "code_challenge", "code_challenge_method", "machine_id"}
    assert {one.name for one in CLI_START} == from_code | {"next"}
    assert {one.name for one in APP_START} == from_code | {"app_name"}


def test_it_is_json_unless_yaml_is_asked_for() -> None:
    for query, accept, kind in [
        ("", "*/*", "application/json"),
        ("", "application/yaml", "application/yaml"),
        ("", "text/html,application/xhtml+xml", "application/json"),
        ("?format=yaml", "*/*", "application/yaml"),
        ("?format=json", "application/yaml", "application/json"),
    ]:
        answer = Client().get(f"/api/v1/schema{query}", headers={"Accept": accept})
        assert answer.status_code == 200, kind
        assert answer["Content-Type"] == kind, kind
        assert answer["Access-Control-Allow-Origin"] == "*", kind
        assert answer.content.startswith(b'{"openapi":"3.1' if kind.endswith("json") else b"openapi: 3.1"), kind


# Which ignores what is unknown.
BY_RFC_6749 = (
    "/api/v1/auth/oauth/",
    "/api/v1/auth/spa/",
    "/api/v1/auth/device/",
    "/api/v1/auth/clients",
)
OF_HOOKS = "/api/channel/event"  # so do frames: an older hub must keep what a newer program reports


def _objects(schema: Any) -> Iterator[Json]:
    """The objects that a schema of a body is made of."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield from _objects(openapi()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "properties" in schema:
        yield schema
    for inner in (schema.get("items"), *schema.get("properties", {}).values(), *schema.get("anyOf", [])):
        yield from _objects(inner)
    for inner in (*schema.get("oneOf", []), *schema.get("allOf", [])):
        yield from _objects(inner)


def test_a_rest_body_has_no_fields_but_those_it_names() -> None:
    checked = 0
    for (path, method), call in described().items():
        is_rest = path.startswith(("/api/v1/", "/api/channel/")) and not path.startswith(BY_RFC_6749)
        if not is_rest or path == OF_HOOKS or "requestBody" not in call:
            continue
        for content in call["requestBody"]["content"].values():
            for one in _objects(content["schema"]):
                checked += 1
                assert one.get("additionalProperties") is False, (path, method, one)
    assert checked > 20
