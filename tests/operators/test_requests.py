"""Requests to the room that are broken, hostile or from elsewhere: a fitting answer each, never a 5xx."""

import asyncio

import httpx
import pytest

from lab.agents import Echo, Held
from lab.callers import bearer, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.operators.operator import post, refused, route
from tests.operators.rows import revoke, share

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


async def test_a_hostile_body_is_the_clients_fault(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    url, token = embedded_hub.url, embedded_hub.mint("alice", "session")
    for path in PATHS:
        for name, body in HOSTILE.items():
            with subtests.test(path=path, body=name):
                refused(await raw(url, path, token, body), 400, "validation_failed")
    for wrong in ([0], [-1], [2**63], [10**400], ["1"], [None], [1.5], [1] * 51, 7, {}):
        with subtests.test(attachments=wrong):
            response = await post(url, PATHS[0], token, {"text": "x", "attachments": wrong})
            assert "attachments" in refused(response, 400, "validation_failed")


async def test_the_form_of_a_request_is_checked(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    url, token = embedded_hub.url, embedded_hub.mint("alice", "session")
    for path in PATHS:
        for sent, (media_type, body, status, code) in (
            (token, ("text/plain", b"{}", 415, "unsupported_media_type")),
            ("none", ("text/plain", b"{}", 415, "unsupported_media_type")),
            (token, ("", b"[]", 400, "validation_failed")),
            (token, ("application/a2a+json", b"[]", 400, "validation_failed")),
            (token, ("application/json", b" " * 1_048_577, 413, "payload_too_large")),
        ):
            with subtests.test(path=path, media_type=media_type, body=body):
                refused(await raw(url, path, sent, body, **{"Content-Type": media_type}), status, code)
        async with web(url) as client:
            response = await client.get(f"/api/v1{path}", headers=bearer(token))
        refused(response, 405, "method_not_allowed")
        assert response.headers["allow"] == "POST"


async def test_only_operators_tokens_count(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    for path in PATHS:
        for token in (None, "cw_sess_" + "0" * 32, embedded_hub.mint("alice", "channel")):
            with subtests.test(path=path, token=token):
                response = await post(embedded_hub.url, path, token, {})
                refused(response, 401, "unauthorized")
                assert response.headers["www-authenticate"] == "Bearer"


async def test_odd_names_are_absent(embedded_hub: HubProcess) -> None:
    for peer in ("%00", "%ff", "%ED%A0%80", "a%0Ab", "..", "x" * 3000, "%2F", "@", "a/b/c"):
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


async def test_apps_at_home_elsewhere_may_read(
    start_hub: StartHub, make_storage: MakeStorage, subtests: pytest.Subtests
) -> None:
    hub = start_hub(make_storage("embedded"), APP_ORIGINS="https://app.example")
    for origin, allowed in {"https://app.example": "https://app.example", "https://evil.example": None}.items():
        with subtests.test(origin=origin):
            response = await post(
                hub.url, "/peers/probe", hub.mint("bob", "session"), {}, headers={"Origin": origin}
            )
            assert response.headers.get("access-control-allow-origin") == allowed
            async with web(hub.url) as client:
                preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
                response = await client.options("/api/v1/peers/x/route", headers=preflight)
            assert response.headers.get("access-control-allow-origin") == allowed


async def test_a_waiting_ask_ends_when_its_token_is_revoked(embedded_hub: HubProcess) -> None:
    hub, login = embedded_hub, "revoked-asker"
    async with Held(hub.url, hub.mint("owner", "channel")) as agent:
        asker = hub.mint(login, "session")
        share(hub, agent.session_id, **{login: "prompter"})
        asking = asyncio.create_task(route(hub, asker, agent.routing_name, "x"))
        await agent.heard("prompt")
        revoke(hub, login)
        refused(await asking, 401, "unauthorized")
