"""Requests to the room that are broken, hostile or from elsewhere: a fitting answer each, never a 5xx."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from lab.agents import Echo, Held
from lab.callers import bearer, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.operators.operator import post, prompt, refused, route
from tests.operators.rows import put, share

PATHS = ["/sessions/00000000-0000-0000-0000-000000000000/prompt", "/peers/x/route", "/peers/probe"]
DEEP = b'{"text":' + b"[" * 5000 + b"]" * 5000 + b"}"
HOSTILE = {
    "nul": b'{"text": "a\\u0000b", "prompt": "a\\u0000b", "mode": "ask"}',
    "half a character": b'{"text": "\\ud800", "prompt": "\\ud800", "mode": "ask"}',
    "named twice": b'{"text": "a", "text": "b"}',
    "not UTF-8": b'{"text": "\xff"}',
    "not JSON": b"text",
    "nothing": b"",
    "NaN": b'{"text": NaN}',
    "deep": DEEP,
    "wide": b'{"text": [' + b"[]," * 20_000 + b"0]}",
    "a long number": b'{"text": ' + b"9" * 10_000 + b"}",
    "an array": b"[]",
}


async def raw(url: str, path: str, token: str, body: bytes, **headers: str) -> httpx.Response:
    async with web(url) as client:
        sent = {"Content-Type": "application/json"} | bearer(token) | headers
        return await client.post(f"/api/v1{path}", content=body, headers=sent)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_body_is_the_clients_fault(embedded_hub: HubProcess, path: str, body: bytes) -> None:
    response = await raw(embedded_hub.url, path, embedded_hub.mint("alice", "session"), body)
    refused(response, 400, "validation_failed")


@pytest.mark.parametrize("wrong", [[0], [-1], [2**63], [10**400], ["1"], [None], [1.5], [1] * 51, 7, {}])
async def test_attachments_are_file_ids(embedded_hub: HubProcess, wrong: Any) -> None:
    body = {"text": "x", "attachments": wrong}
    response = await post(embedded_hub.url, PATHS[0], embedded_hub.mint("alice", "session"), body)
    assert "attachments" in refused(response, 400, "validation_failed")


@pytest.mark.parametrize("path", PATHS)
async def test_the_form_of_a_request_is_checked(embedded_hub: HubProcess, path: str) -> None:
    url, token = embedded_hub.url, embedded_hub.mint("alice", "session")
    refused(await raw(url, path, token, b"{}", **{"Content-Type": "text/plain"}), 415, "unsupported_media_type")
    refused(await raw(url, path, "none", b"{}", **{"Content-Type": "text/plain"}), 415, "unsupported_media_type")
    for media_type in ("", "application/a2a+json"):
        refused(await raw(url, path, token, b"[]", **{"Content-Type": media_type}), 400, "validation_failed")
    refused(await raw(url, path, token, b" " * 1_048_577), 413, "payload_too_large")
    async with web(url) as client:
        response = await client.get(f"/api/v1{path}", headers=bearer(token))
    refused(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [None, "cw_sess_" + "0" * 32, "channel"])
async def test_only_operators_tokens_count(embedded_hub: HubProcess, path: str, token: str | None) -> None:
    shown = embedded_hub.mint("alice", "channel") if token == "channel" else token
    response = await post(embedded_hub.url, path, shown, {})
    refused(response, 401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("peer", ["%00", "%ff", "%ED%A0%80", "a%0Ab", "..", "x" * 3000, "%2F", "@", "a/b/c"])
async def test_odd_names_are_absent(embedded_hub: HubProcess, peer: str) -> None:
    refused(await route(embedded_hub, embedded_hub.mint("alice", "session"), peer, "x"), 404, "not_found")


async def test_a_cookie_counts_from_the_hubs_own_pages(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    cookie = {"Cookie": f"cw_session={hub.mint('owner', 'session')}"}
    async with Echo(hub.url, hub.mint("owner", "channel")) as agent:
        path = f"/sessions/{agent.session_id}/prompt"
        ours = await post(hub.url, path, None, {"text": "x"}, headers=cookie | {"Origin": hub.url})
        assert ours.status_code == 200
        for origin in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {}):
            foreign = await post(hub.url, path, None, {"text": "x"}, headers=cookie | origin)
            refused(foreign, 403, "forbidden_origin")


async def test_apps_at_home_elsewhere_may_read(start_hub: StartHub, make_storage: MakeStorage) -> None:
    hub = start_hub(make_storage("embedded"), APP_ORIGINS="https://app.example")
    for origin, allowed in {"https://app.example": "https://app.example", "https://evil.example": None}.items():
        response = await post(hub.url, "/peers/probe", hub.mint("bob", "session"), {}, headers={"Origin": origin})
        assert response.headers.get("access-control-allow-origin") == allowed
        async with web(hub.url) as client:
            preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            response = await client.options("/api/v1/peers/x/route", headers=preflight)
        assert response.headers.get("access-control-allow-origin") == allowed


async def test_a_waiting_ask_ends_when_its_token_is_revoked(
    start_hub: StartHub, make_storage: MakeStorage
) -> None:
    hub = start_hub(make_storage("embedded"))
    async with Held(hub.url, hub.mint("owner", "channel")) as agent, web(hub.url) as client:
        share(hub, agent.session_id, alice="prompter")
        request = client.build_request(
            "POST",
            f"/api/v1/peers/{agent.routing_name}/route",
            content=json.dumps({"prompt": "x", "mode": "ask"}),
            headers={"Content-Type": "application/json"} | bearer(hub.mint("alice", "session")),
        )

        asking = asyncio.create_task(client.send(request))
        await agent.heard("prompt")
        put(hub, ("revoke", {"login": "alice"}))
        refused(await asking, 401, "unauthorized")


async def test_the_room_is_closed_while_the_hub_drains(start_hub: StartHub, make_storage: MakeStorage) -> None:
    hub = start_hub(make_storage("embedded"))
    owner = hub.mint("owner", "session")
    async with Held(hub.url, hub.mint("owner", "channel")) as agent:
        assert (await prompt(hub, owner, agent.session_id, "keeps it open")).status_code == 200
        await agent.heard("prompt")
        hub.terminate()

        async def refused_softly() -> httpx.Response | None:
            response = await route(hub, owner, agent.routing_name, "one more")
            return response if response.status_code == 503 else None

        response = await eventually(refused_softly, "new prompts get 503", every_s=0.05)
        refused(response, 503, "unavailable")
        assert response.headers["retry-after"] == "2"
        agent.release.set()
        assert await hub.exit_code() == 0
