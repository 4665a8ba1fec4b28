"""Signed frames: the canonical form, and what a team that demands signatures accepts."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from gateway.wire.frames import canonicalize, is_signed, make_signature
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.gateway.client import change_policy, code_of, owner_of, team

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


async def test_a_team_that_demands_signatures_takes_signed_frames_alone(
    embedded_hub: HubProcess, key: Json
) -> None:
    login, list_agents = "signing-team", {"type": "discovery", "content": {"action": "list"}}
    async with team(embedded_hub, login, "alpha"), owner_of(embedded_hub, login) as client:

        async def code(**signature: Any) -> int:
            return code_of(await client.ask("discovery", list_agents["content"], **signature))[0]

        async def signed_code() -> int:
            frame = list_agents | {"metadata": {"correlationId": f"signed-{len(client.frames)}"}}
            await client.socket.send(json.dumps(signed(frame, key["secret"].encode(), key["keyId"])))
            return code_of(await client.reply(frame["metadata"]["correlationId"], "discovery"))[0]

        wrong = signed(list_agents, b"wrong", key["keyId"])["metadata"]
        assert await code(metadata=wrong) == 0  # passed on where none is demanded
        await change_policy(embedded_hub, login, requiresSignature=True)
        assert await code() == 5002
        assert code_of(client.of("error")[0]) == (5002, "bad_signature")
        assert await signed_code() == 0
        await client.settle()  # a ping needs none
        async with web(embedded_hub.url, headers=bearer(embedded_hub.mint(login, "session"))) as rest:
            address = f"/api/v1/gateway/keys/{key['keyId']}"
            assert [(await rest.delete(address)).status_code for _ in range(2)] == [204, 404]

        async def is_gone() -> bool:
            return await signed_code() == 5002

        await eventually(is_gone, "the deleted key signs no more")


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
