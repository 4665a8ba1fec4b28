"""The endpoint in the hub's OpenAPI description. `wire.py` checks each answer that other tests get against it."""

from typing import Any

import jsonschema
import pytest

from agnt.wire.envelope import read_envelope
from agnt.wire.payloads import read_payload
from clawbridge.agnt.fields import INTENTS, MEANINGS, EnvelopeRefused, ErrorCode
from clawbridge.agnt.signing import MAX_UNIX_S
from hub.descriptions.openapi import openapi
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.agnt.description import COMPONENTS, DESCRIBED, RESPONSES, check_described, check_shape
from tests.agnt.wire import Key, envelope, new_login
from tests.conftest import MakeStorage

ORDERS = {
    "venue.list": "AgntListOrder",
    "booking.search": "AgntSearchOrder",
    "booking.confirm": "AgntConfirmOrder",
}
REQUEST = DESCRIBED["/a2a/v1"]["requestBody"]["content"]["application/json"]["schema"]


def test_each_code_is_described_with_its_status() -> None:
    answers = DESCRIBED["/a2a/v1"]["responses"]
    assert answers.keys() == {str(one.status) for one in MEANINGS.values()} | {"200", "400", "408"}
    for code, meaning in MEANINGS.items():
        assert f"`{code}`" in answers[str(meaning.status)]["description"]
    for status in ("400", "408", "422"):
        assert "`invalid_envelope`" in answers[status]["description"]
    assert set(COMPONENTS["ErrorCode"]["enum"]) == set(ErrorCode)


def test_a_key_is_a_scheme_of_its_own() -> None:
    scheme = openapi()["components"]["securitySchemes"]["agntKey"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for path in ("/a2a/v1", "/network/venues"):
        assert DESCRIBED[path].get("security") == [{"agntKey": []}]
    assert DESCRIBED["/a2a/v1/status"].get("security") == [{}, {"agntKey": []}]
    headers = DESCRIBED["/a2a/v1"]["responses"]["429"]["headers"]
    assert headers.keys() == {
        *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
        *("X-A2A-Error", "Retry-After"),
    }


def is_described(body: Json) -> bool:
    try:
        check_shape(REQUEST, body)
    except jsonschema.ValidationError:
        return False
    return True


def is_read(body: Json) -> bool:
    try:
        read_payload(read_envelope(body), is_strict=True)
    except EnvelopeRefused:
        return False
    return True


def _values(name: str, schema: Json) -> list[Any]:
    """Values of a field: at its limits, beyond them, and of other types."""
    longest = schema.get("maxLength", 5)
    texts = ["", "x" * longest, "x" * (longest + 1)] if schema.get("type") == "string" else []
    numbers = [0, 1, schema.get("maximum", 9), schema.get("maximum", 8) + 1]
    return [*texts, *numbers, True, 1.5, None, [], {}] if name not in ("_ts", "_from", "_sig") else []


ORDERED = [
    (intent, name, value)
    for intent, component in ORDERS.items()
    for name, schema in [*COMPONENTS[component]["properties"].items(), ("other", {})]
    for value in _values(name, schema)
]


def test_a_payload_is_described_with_the_limits_that_are_checked() -> None:
    assert len(ORDERED) > 150
    wrong = []
    for intent, name, value in ORDERED:
        given = {"venue_id": "cafe"} if intent == "booking.confirm" else {}
        body = envelope(intent, given | {name: value})
        if is_described(body) != is_read(body):
            wrong.append((intent, name, str(value)[:20]))
    assert wrong == []


HOP: Json = {"agent": "my_agent_001", "ts": 1_775_988_124, "sig": "0" * 64}
HEADINGS: dict[str, Json] = {
    "as it is": {},
    "defaults": {"protocol": None, "to": None, "ttl_ms": None, "timestamp": None},
    "no sender": {"from_": None},
    "no intent": {"intent_": None},
    "unknown intent": {"intent_": "venue.delete"},
    "sender with a blank": {"from_": "a b"},
    "longest sender": {"from_": "a" * 128},
    "sender too long": {"from_": "a" * 129},
    "address with a blank": {"to": "a b"},
    "other protocol": {"protocol": "agp/1"},
    "no time": {"ttl_ms": 0},
    "more time than there is": {"ttl_ms": 20_000},
    "time as text": {"ttl_ms": "5000"},
    "context as text": {"agent_context": "x"},
    "unknown field": {"priority": 1},
    "another name of the sender": {"from_agent": "my_agent_001"},
    "a hop": {"via": [HOP]},
    "no hops": {"via": []},
    "too many hops": {"via": [HOP] * 5},
    "a hop without a time": {"via": [{"agent": HOP["agent"], "sig": HOP["sig"]}]},
    "a hop with a note": {"via": [HOP | {"note": "x"}]},
    "a hop before time began": {"via": [HOP | {"ts": -1}]},
    "a hop after all times": {"via": [HOP | {"ts": MAX_UNIX_S}]},
    "a hop with a short signature": {"via": [HOP | {"sig": "0" * 63}]},
}


@pytest.mark.parametrize("fields", HEADINGS.values(), ids=HEADINGS)
def test_an_envelope_is_described_as_it_is_read(fields: Json) -> None:
    body = envelope(**fields)
    assert is_described(body) == is_read(body)


def test_the_intents_are_those_of_the_description() -> None:
    asked = [one["$ref"].rpartition("/")[2] for one in REQUEST["anyOf"]]
    for components in (asked, RESPONSES.values()):
        intents = {COMPONENTS[one]["properties"]["intent"]["enum"][0] for one in components}
        assert intents == INTENTS


async def test_answers_without_an_envelope_are_described(embedded_hub: HubProcess, key: Key) -> None:
    async with web(embedded_hub.url) as client:
        answers = [
            await client.get("/a2a/v1/status"),
            await client.get("/a2a/v1/status", headers=bearer(key.token)),
            await client.get("/a2a/v1/status", headers=bearer("agnt_live_1")),
            await client.get("/a2a/v1/status?key=agnt_live_1"),
            await client.get("/network/venues", headers=bearer(key.token)),
            await client.get("/network/venues?limit=0", headers=bearer(key.token)),
            await client.get("/network/venues?key=agnt_live_1", headers=bearer(key.token)),
            await client.get("/network/venues"),
        ]
    assert [one.status_code for one in answers] == [200, 200, 401, 400, 200, 422, 400, 401]
    for answer in answers:
        check_described(answer)


@pytest.mark.slow
async def test_a_hub_without_agnt_neither_serves_nor_describes_it(make_storage: MakeStorage) -> None:
    hub = HubProcess.start(make_storage("embedded"), AGNT=0)
    try:
        token = manage(hub.home.env, "mint_token", "--login", new_login(), "--kind", "agnt").strip()
        async with web(hub.url, headers=bearer(token)) as client:
            paths = (await client.get("/api/v1/schema")).json()["paths"]
            assert "/api/v1/me" in paths
            assert [path for path in DESCRIBED if path in paths] == []
            assert (await client.post("/a2a/v1", json=envelope())).status_code == 404
            assert [path for path in paths if path.startswith("/network/")] == []
            for path in ("/a2a/v1/status", "/network/venues", "/network/webhooks"):
                assert (await client.get(path)).status_code == 404
    finally:
        hub.stop()
