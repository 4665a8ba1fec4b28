"""`POST /a2a/v1` with bodies that no sound program sends: each gets a typed error, and nothing is written."""

import asyncio
import json

import pytest

from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.agnt.wire import (
    PATH,
    Key,
    Program,
    count,
    envelope,
    error_of,
    mint,
    new_login,
    result_of,
    stamp,
)

CONFIRM = envelope("booking.confirm", {"venue_id": "cafe"})
TEXT = json.dumps(CONFIRM)


def replaced(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new)


NESTED = '{"a":' * 5_000 + "1" + "}" * 5_000
HOSTILE: dict[str, tuple[str | bytes, int]] = {
    "nothing": ("", 400),
    "no JSON": ("{", 400),
    "an array": ("[]", 400),
    "two": (TEXT + TEXT, 400),
    "a string": ('"x"', 400),
    "NaN": (replaced('"cafe"', '"cafe", "party_size": NaN'), 400),
    "infinity": (replaced('"cafe"', '"cafe", "party_size": -Infinity'), 400),
    "a number beyond floats": (replaced('"cafe"', '"cafe", "party_size": 1e999'), 400),
    "a float": (replaced('"cafe"', '"cafe", "party_size": 2.0'), 422),
    "a large integer": (replaced('"cafe"', f'"cafe", "party_size": {10**40}'), 422),
    "an integer of 5000 digits": (replaced('"cafe"', f'"cafe", "party_size": {"9" * 5_000}'), 400),
    "a key twice": (replaced('"cafe"', '"cafe", "venue_id": "cafe"'), 400),
    "a field twice": (replaced('"to":', '"to": "x", "to":'), 400),
    "a lone surrogate": (replaced('"cafe"', '"cafe", "user_note": "\\ud800"'), 400),
    "a lone surrogate in a key": (replaced('"cafe"', '"cafe", "\\udfff": 1'), 400),
    "NUL": (replaced('"cafe"', '"cafe\\u0000"'), 400),
    "no UTF-8": (TEXT.encode() + b"\xff", 400),
    "UTF-16": (TEXT.encode("utf-16"), 400),
    "a deep payload": (replaced('"cafe"', f'"cafe", "user_note": {NESTED}'), 400),
    "a deep context": (replaced('"to":', f'"agent_context": {NESTED}, "to":'), 400),
    "many arrays": (replaced('"to":', f'"agent_context": {{"a": [{"[]," * 20_000}1]}}, "to":'), 400),
    "a large body": (replaced('"cafe"', f'"cafe", "user_note": "{"x" * 262_144}"'), 413),
    "a payload that is a number": (replaced('{"venue_id": "cafe"}', "5"), 422),
    "a venue that is an object": (replaced('"cafe"', "{}"), 422),
    "a long venue": (replaced('"cafe"', f'"{"x" * 129}"'), 422),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_body_gets_a_typed_error_and_writes_nothing(
    embedded_hub: HubProcess, asker: Program, keeper: str, name: str
) -> None:
    body, status = HOSTILE[name]
    if isinstance(body, str):  # it was written when the module was imported
        body = body.replace(CONFIRM["timestamp"], stamp())
    answer = await asker.post(body)
    code = "payload_too_large" if status == 413 else "invalid_envelope"
    assert (answer.status_code, error_of(answer)) == (status, code), answer.text
    for table in ("agnt_booking", "agnt_usageevent", "agnt_seenenvelope"):
        assert count(embedded_hub, keeper, table) == 0


@pytest.mark.parametrize("context", [{"n": 10**30}, {"n": -0.0}, {"n": 1e-7, "a" * 60: [[[[]]]]}])
async def test_numbers_of_a_context_come_back(asker: Program, context: Json) -> None:
    answer = await asker.send(agent_context=context)
    assert result_of(answer)["status"] == "ok"
    assert answer.json()["agent_context"] == context


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_other_content_types_are_refused(asker: Program, content_type: str) -> None:
    answer = await asker.post(envelope(), {"Content-Type": content_type})
    assert (answer.status_code, error_of(answer)) == (400, "invalid_envelope")


async def test_every_call_with_a_key_counts_also_one_that_fails(asker: Program) -> None:
    left = [int((await asker.send()).headers["x-ratelimit-remaining"])]
    answers = [
        await asker.post("{"),
        await asker.post("x" * 300_000),
        await asker.send(from_=""),
        await asker.send("x.y"),
        await asker.confirm("none"),
    ]
    left += [int(answer.headers["x-ratelimit-remaining"]) for answer in answers]
    assert left == [left[0] - used for used in range(6)]


@pytest.mark.parametrize("query", ["token={}", "api_key=x", "a=agnt_live_x", "{}=1", "Authorization=Bearer%20x"])
async def test_a_key_in_the_address_is_refused(embedded_hub: HubProcess, key: Key, query: str) -> None:
    async with web(embedded_hub.url, headers=bearer(key.token)) as client:
        for method, path in (("POST", PATH), ("GET", "/network/venues"), ("GET", "/a2a/v1/status")):
            content = json.dumps(envelope()) if method == "POST" else None
            headers = {"Content-Type": "application/json"}
            answer = await client.request(
                method, f"{path}?{query.format(key.token)}", content=content, headers=headers
            )
            assert answer.status_code == 400, answer.text
            assert answer.headers["x-a2a-error"] == "invalid_envelope"


async def test_other_methods_are_refused(embedded_hub: HubProcess, key: Key) -> None:
    async with web(embedded_hub.url, headers=bearer(key.token)) as client:
        for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD"):
            answer = await client.request(method, PATH)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        answer = await client.post("/a2a/v1/status")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_two_keys_are_refused(embedded_hub: HubProcess, key: Key) -> None:
    headers = [("Authorization", f"Bearer {key.token}"), ("Authorization", "Bearer agnt_live_x")]
    async with web(embedded_hub.url) as client:
        answer = await client.post(PATH, json=envelope(), headers=headers)
    assert (answer.status_code, error_of(answer)) == (400, "invalid_envelope")


async def test_a_large_body_is_refused_before_it_is_sent(embedded_hub: HubProcess, key: Key) -> None:
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer {key.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 900000000\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", int(embedded_hub.url.rpartition(":")[2]))
    writer.write(head.encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 413")
    writer.close()


async def test_a_log_row_holds_neither_key_nor_signature(
    embedded_hub: HubProcess, asker: Program, keeper: str
) -> None:
    payload = asker.key.sign({})
    assert result_of(await asker.send(payload=payload))["status"] == "ok"
    for secret in (asker.key.token, asker.key.secret, payload["_sig"]):
        for column in ("metadata", "sender", "status"):
            assert (
                count(embedded_hub, keeper, "agnt_interaction", f"CAST({column} AS text) LIKE '%{secret}%'") == 0
            )


@pytest.mark.slow
async def test_a_hub_with_tls_refuses_plain_http(make_storage: MakeStorage) -> None:
    hub = HubProcess.start(
        make_storage("embedded"), PUBLIC_URL="https://hub.example", TRUSTED_PROXIES="127.0.0.1", GATEWAY="0"
    )
    try:
        key = mint(hub, new_login())
        async with web(hub.url) as client:
            asking = Program(client, key)
            answer = await asking.send()
            assert (answer.status_code, error_of(answer)) == (403, "tls_required")
            for path in ("/a2a/v1/status", "/network/venues"):
                assert (await client.get(path)).status_code == 403
            forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
            assert result_of(await asking.post(envelope(), forwarded))["status"] == "ok"
    finally:
        hub.stop()
