"""Signed frames: the canonical form, and what a team that demands signatures accepts."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from gateway.service.team.signatures import canonicalize, is_signed, make_signature
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.gateway.client import EchoSeat, GatewayClient
from tests.gateway.test_tokens import LIST, code_of

KEY = b"gwk_0123456789abcdef0123456789abcdef"
FRAME: Json = {
    "type": "message",
    "id": "m-1",
    "agent": "coder",
    "content": {"role": "user", "content": "h\u00e9llo \u20ac"},
    "timestamp": 1712345678901,
    "metadata": {"ttl": 1.50, "priority": "high"},
}
CANONICAL = (
    '{"agent":"coder","content":{"content":"h\u00e9llo \u20ac","role":"user"},"id":"m-1",'
    '"metadata":{"priority":"high","ttl":1.5},"timestamp":1712345678901,"type":"message"}'
)
VALUE = "f62534e9342052509178d535f2f061fd8affa5a67e04c2e9fca4b6f026745691"


def signed(frame: Json, key: bytes = KEY, key_id: str = "key-1", **other: Any) -> Json:
    """A frame with its signature, made without the hub's code."""
    text = json.dumps(frame, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    value = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    signature = {"alg": "HMAC-SHA256", "keyId": key_id, "value": value} | other
    return frame | {"metadata": frame.get("metadata", {}) | {"signature": signature}}


def test_the_vectors_of_the_reference_hold() -> None:
    assert canonicalize(FRAME).decode() == CANONICAL
    assert canonicalize(signed(FRAME)).decode() == CANONICAL
    assert make_signature(FRAME, KEY) == VALUE


def test_a_signature_is_good_for_its_frame_and_key_alone() -> None:
    keys = {"key-1": KEY, "key-2": b"another"}
    good = signed(FRAME)
    assert is_signed(good, keys)
    assert is_signed({**good, "metadata": dict(reversed(good["metadata"].items()))}, keys)
    bad = [
        FRAME,
        {"type": "ping"},
        good | {"agent": "tester"},
        good | {"extra": 1},
        signed(FRAME, key_id="key-2"),
        signed(FRAME, key_id="key-3"),
        signed(FRAME, alg="none"),
        signed(FRAME, value=good["metadata"]["signature"]["value"].upper()),
        signed(FRAME, value="\udce9"),
        signed(FRAME, value=7),
        signed(FRAME, keyId=["key-1"]),
        FRAME | {"metadata": {"signature": "text"}},
        signed(FRAME | {"timestamp": 2**60}),
    ]
    assert [one for one in bad if is_signed(one, keys)] == []


@pytest.fixture
async def key(embedded_hub: HubProcess) -> Json:
    """A new key of the team `signing-team`, over REST."""
    async with web(embedded_hub.url) as client:
        headers = bearer(embedded_hub.mint("signing-team", "session"))
        made = await client.post("/api/v1/gateway/keys", json={"name": "laptop"}, headers=headers)
        assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
        return dict(made.json())


async def demand(hub: HubProcess, login: str) -> None:
    """Make a team demand signatures."""
    async with web(hub.url) as client:
        headers = bearer(hub.mint(login, "session"))
        answer = await client.patch("/api/v1/team/policy", json={"requiresSignature": True}, headers=headers)
        assert answer.status_code == 200, answer.text


async def test_a_team_that_demands_signatures_takes_signed_frames_alone(
    embedded_hub: HubProcess, key: Json
) -> None:
    login = "signing-team"
    async with (
        EchoSeat(embedded_hub.url, embedded_hub.mint(login, "channel"), agentId="alpha") as alpha,
        GatewayClient(embedded_hub.url, embedded_hub.mint(login, "session")) as client,
    ):
        await alpha.find("auth-response")
        unsigned = signed({"type": "discovery", "content": {"action": "list"}}, b"wrong", key["keyId"])
        assert await code_of(client, *LIST, metadata=unsigned["metadata"]) == 0  # passed on where none is demanded
        await demand(embedded_hub, login)

        async def is_refused() -> bool:
            return await code_of(client, *LIST) == 5002

        await eventually(is_refused, "the policy counts")
        error = next(one for one in client.frames if one["type"] == "error")
        assert error["content"]["reason"] == "bad_signature"
        frame = {"type": "discovery", "content": {"action": "list"}, "metadata": {"correlationId": "signed-1"}}
        await client.socket.send(json.dumps(signed(frame, key["secret"].encode(), key["keyId"])))
        found = await client.find("discovery", lambda one: one["metadata"] == {"correlationId": "signed-1"})
        assert [one["name"] for one in found["content"]["agents"]] == ["alpha"]
        await client.send("ping")
        await client.find("pong")
        async with web(embedded_hub.url) as rest:
            headers = bearer(embedded_hub.mint(login, "session"))
            address = f"/api/v1/gateway/keys/{key['keyId']}"
            assert (await rest.delete(address, headers=headers)).status_code == 204
            assert (await rest.delete(address, headers=headers)).status_code == 404

        async def is_gone() -> bool:
            before = len(client.frames)
            await client.socket.send(json.dumps(signed(frame, key["secret"].encode(), key["keyId"])))
            await eventually(lambda: _has_more(client, before), "an answer")
            return bool(client.frames[before]["type"] == "error")

        await eventually(is_gone, "the deleted key signs no more")


async def _has_more(client: GatewayClient, before: int) -> bool:
    return len(client.frames) > before


async def test_a_secret_is_shown_once_and_keys_are_their_owners(embedded_hub: HubProcess, key: Json) -> None:
    async with web(embedded_hub.url) as client:
        headers = bearer(embedded_hub.mint("signing-team", "session"))
        listed = (await client.get("/api/v1/gateway/keys", headers=headers)).json()["items"]
        assert {name for one in listed for name in one} == {"keyId", "name", "createdAt"}
        assert key["keyId"] in {one["keyId"] for one in listed}
        strangers = bearer(embedded_hub.mint("signing-stranger", "session"))
        assert (await client.get("/api/v1/gateway/keys", headers=strangers)).json()["items"] == []
        address = f"/api/v1/gateway/keys/{key['keyId']}"
        assert (await client.delete(address, headers=strangers)).status_code == 404
    [(sealed,)] = sql(embedded_hub, "SELECT secret FROM gateway_envelopekey WHERE key_id = ?", key["keyId"])
    assert key["secret"] not in sealed
