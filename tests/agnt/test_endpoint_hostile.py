"""`POST /a2a/v1` with bodies that no sound program sends: each gets a typed error, and nothing is written."""

import asyncio
import json

import pytest

from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.agnt.wire import PATH, Key, Program, count, envelope, error_of, mint, new_login, result_of


async def test_a_hostile_request_gets_a_typed_error_and_writes_nothing(
    embedded_hub: HubProcess, asker: Program, keeper: str
) -> None:
    """A few that a server or a database could trip over: `test_envelope.py` and `test_payloads.py` have all."""
    confirm = envelope("booking.confirm", {"venue_id": "cafe"})
    text, nested = json.dumps(confirm), '{"a":' * 5_000 + "1" + "}" * 5_000
    hostile: list[tuple[str | bytes, Json, int, str]] = [
        ("", {}, 400, "invalid_envelope"),
        (text.encode() + b"\xff", {}, 400, "invalid_envelope"),
        (text.encode("utf-16"), {}, 400, "invalid_envelope"),
        (text.replace('"cafe"', '"cafe\\u0000"'), {}, 400, "invalid_envelope"),
        (text.replace('"cafe"', f'"cafe", "user_note": {nested}'), {}, 400, "invalid_envelope"),
        (text.replace('"cafe"', f'"cafe", "user_note": "{"x" * 262_144}"'), {}, 413, "payload_too_large"),
        (text.replace('"cafe"', '"cafe", "party_size": 0'), {}, 422, "invalid_envelope"),
        (json.dumps(confirm | {"timestamp": ""}), {}, 422, "invalid_envelope"),  # it could not be repeated
        (text, {"Content-Type": "text/plain"}, 400, "invalid_envelope"),
    ]
    for body, headers, status, code in hostile:
        answer = await asker.post(body, headers)
        assert (answer.status_code, error_of(answer)) == (status, code), body[:300]
    for table in ("agnt_booking", "agnt_usageevent", "agnt_seenenvelope"):
        assert count(embedded_hub, keeper, table) == 0


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


async def test_a_key_in_the_address_and_two_keys_are_refused(embedded_hub: HubProcess, key: Key) -> None:
    queries = (f"token={key.token}", "api_key=x", "a=agnt_live_x", f"{key.token}=1", "Authorization=Bearer%20x")
    async with web(embedded_hub.url, headers=bearer(key.token)) as client:
        answers = [await client.post(f"{PATH}?{query}", json=envelope()) for query in queries]
        answers += [await client.get(f"{path}?{queries[0]}") for path in ("/network/venues", "/a2a/v1/status")]
    async with web(embedded_hub.url) as client:
        twice = [("Authorization", f"Bearer {token}") for token in (key.token, "agnt_live_x")]
        answers.append(await client.post(PATH, json=envelope(), headers=twice))
    for answer in answers:
        assert (answer.status_code, answer.headers["x-a2a-error"]) == (400, "invalid_envelope"), answer.text


async def test_other_methods_are_refused(embedded_hub: HubProcess, key: Key, subtests: pytest.Subtests) -> None:
    async with web(embedded_hub.url, headers=bearer(key.token)) as client:
        for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD"):
            answer = await client.request(method, PATH)
            with subtests.test(method=method):
                assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        answer = await client.post("/a2a/v1/status")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


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
        shown = f"CAST(metadata AS text) || sender || status LIKE '%{secret}%'"
        assert count(embedded_hub, keeper, "agnt_interaction", shown) == 0


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
