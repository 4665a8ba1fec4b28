"""Two renderings of one card: which address and version give which, what they hold, how long they may be kept."""

import asyncio
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest
from a2a.types import AgentCard
from google.protobuf.json_format import ParseDict

from lab.agents import Echo, online
from lab.callers import bearer, rpc_path, send, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.http_json import V1
from tests.surfaces.test_cards import patch

Json = dict[str, Any]
WELL_KNOWN = "/.well-known/agent-card.json"


async def get(
    hub: HubProcess, handle: str, path: str = WELL_KNOWN, verb: str = "GET", **headers: str
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with web(hub.url) as client:
        return await client.request(verb, f"{rpc_path(handle)}{path}", headers=named)


def is_strict(answer: httpx.Response) -> bool:
    """A closed card of 1.0; fails when it is neither this nor the merged one."""
    assert answer.status_code == 200, answer.text
    card = answer.json()
    assert ("url" in card) == ("_clawborrator" in card) == ("signatures" not in card)
    return "signatures" in card


def empties(value: Any) -> bool:
    """True if a JSON value holds an empty text, list or object."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value in ("", [], {}, None) or any(empties(one) for one in inside)


RENDERINGS: list[tuple[str, dict[str, str], bool]] = [
    ("/agent-card.json", {}, False),
    ("/agent-card.json", {"A2A_Version": "1.0"}, False),
    (WELL_KNOWN, {}, False),
    (WELL_KNOWN, {"A2A_Version": ""}, False),
    (WELL_KNOWN, {"A2A_Version": "0.3"}, False),
    (WELL_KNOWN, {"A2A_Version": "99.0"}, False),
    (WELL_KNOWN, {"A2A_Version": "10"}, False),
    (WELL_KNOWN, {"A2A_Version": "1.0"}, True),
    (WELL_KNOWN, {"A2A_Version": "1"}, True),
    (WELL_KNOWN, {"A2A_Version": "1.0.1"}, True),
    (WELL_KNOWN, {"A2A_Version": "1.0, 0.3"}, False),
    (f"{WELL_KNOWN}?A2A-Version=1.0", {}, True),
    (f"{WELL_KNOWN}?A2A-Version=1.0", {"A2A_Version": "0.3"}, False),
    ("/.well-known/agent.json", {}, False),
    ("/.well-known/agent.json", {"A2A_Version": "1.0"}, True),
    ("/v1/.well-known/agent-card.json", {}, True),
]


async def test_address_and_version_choose_the_rendering(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        for path, headers, strict in RENDERINGS:
            assert is_strict(await get(embedded_hub, agent.handle, path, **headers)) == strict, (path, headers)


async def test_the_strict_card_fits_the_closed_schema_of_1_0(hub: HubProcess) -> None:
    async with online(hub, Echo, agent={"name": "bare", "suggestedPrompts": ["what's new?"]}) as agent:
        card = (await get(hub, agent.handle, **{"A2A_Version": "1.0"})).json()
    assert not empties(card)
    parsed = ParseDict(card, AgentCard(), ignore_unknown_fields=False)
    assert [(one.url, one.protocol_binding, one.protocol_version) for one in parsed.supported_interfaces] == [
        (hub.url + rpc_path(agent.handle), "JSONRPC", "1.0"),
        (hub.url + rpc_path(agent.handle), "HTTP+JSON", "1.0"),
    ]
    assert (parsed.description, list(parsed.skills[0].examples)) == ("bare", ["what's new?"])
    capabilities = parsed.capabilities
    assert capabilities.streaming
    assert capabilities.push_notifications
    assert capabilities.extended_agent_card
    extension, _ = capabilities.extensions
    assert (extension.params["handle"], extension.params["dailyBudget"]) == (agent.handle, 1000)
    assert extension.uri.startswith(f"{hub.url}/")
    async with web(hub.url) as client:
        described = (await client.get(extension.uri)).text
    assert all(f"  {name} " in described for name in card["capabilities"]["extensions"][0]["params"])


@pytest.mark.parametrize("headers", [{}, V1], ids=["merged", "strict"])
async def test_a_copy_of_a_card_holds_until_a_setting_changes(
    hub: HubProcess, alice: str, headers: dict[str, str]
) -> None:
    async with online(hub, Echo, agent={"dailyBudgetQueries": 7}) as agent, web(hub.url) as client:
        path = f"{rpc_path(agent.handle)}{WELL_KNOWN}"
        first = await client.get(path, headers=headers)
        etag, modified = first.headers["etag"], first.headers["last-modified"]
        assert first.headers["cache-control"] == "public, max-age=0, must-revalidate"
        assert "A2A-Version" in first.headers["vary"]
        assert etag.startswith('W/"')
        assert parsedate_to_datetime(modified).tzinfo is not None
        await send(hub.url, agent.handle, "counts on the card, not in the ETag", alice)
        strong = etag.removeprefix("W/")
        for holds in (etag, strong, "*", f'"other", {etag}'):
            kept = await client.get(path, headers={**headers, "If-None-Match": holds})
            assert (kept.status_code, kept.content) == (304, b""), holds
            assert kept.headers["etag"] == etag
            assert kept.headers["cache-control"] == first.headers["cache-control"]
            assert kept.headers["vary"] == first.headers["vary"]
            assert kept.headers["access-control-allow-origin"] == "*"

        async def holds_by_date() -> bool:
            fresh = await client.get(path, headers=headers)
            since = {"If-Modified-Since": fresh.headers["last-modified"]}
            return (await client.get(path, headers={**headers, **since})).status_code == 304

        await eventually(holds_by_date, "the copy holds by its date, a second after the change")
        await patch(hub, agent.agent["id"], name="another name")
        for stale in ({"If-None-Match": etag}, {"If-Modified-Since": modified}):
            fresh = await client.get(path, headers={**headers, **stale})
            assert (fresh.status_code, fresh.json()["name"]) == (200, "another name"), stale


async def test_a_held_copy_is_of_one_rendering_and_hiding_the_agent_bites_on_the_next_request(
    hub: HubProcess,
) -> None:
    async with online(hub, Echo) as agent:
        merged, strict = await get(hub, agent.handle), await get(hub, agent.handle, **{"A2A_Version": "1.0"})
        etag = merged.headers["etag"]
        assert etag != strict.headers["etag"]
        assert (await get(hub, agent.handle, If_None_Match=etag, A2A_Version="1.0")).status_code == 200
        for hidden in ({"status": "draft"}, {"status": "published", "access": "private"}):
            await patch(hub, agent.agent["id"], **hidden)
            for held in ("*", etag):
                assert (await get(hub, agent.handle, If_None_Match=held)).status_code == 404, hidden
            dated = await get(hub, agent.handle, If_Modified_Since="Fri, 01 Jan 2100 00:00:00 GMT")
            assert dated.status_code == 404, hidden


async def test_a_card_that_is_not_for_all_is_kept_by_no_cache(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        await patch(hub, agent.agent["id"], access="limited", allowedLogins=["alice"])
        for headers in ({}, {"A2A_Version": "1.0"}):
            answer = await get(hub, agent.handle, **bearer(alice), If_None_Match="*", **headers)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "private, no-store"
            assert not {"etag", "last-modified"} & answer.headers.keys()


async def test_junk_in_conditions_is_no_match(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        for junk in ("", '"', "W/", "x" * 5000, "*, *", '"a' * 900):
            answer = await get(embedded_hub, agent.handle, If_None_Match=junk, If_Modified_Since=junk)
            assert answer.status_code == 200, junk


async def test_cards_answer_preflights_and_nothing_that_writes(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        asked = await get(embedded_hub, agent.handle, verb="OPTIONS", Origin="https://elsewhere.example")
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, "*")
        assert "A2A-Version" in asked.headers["access-control-allow-headers"]
        for verb in ("POST", "PUT", "DELETE"):
            answer = await get(embedded_hub, agent.handle, verb=verb)
            assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")


async def test_no_spelling_of_a_cards_address_is_a_redirect(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        for path in ("/agent-card.json/", "//.well-known/agent-card.json", "/v1/v1", "/.well-known"):
            answer = await get(embedded_hub, agent.handle, path)
            assert answer.status_code in (404, 405), path
        owner = agent.handle.partition("/")[0]
        lost = await get(embedded_hub, owner)
        assert (lost.status_code, "slash" in lost.json()["message"]) == (404, True)


async def test_many_readers_at_once_find_one_key(hub: HubProcess) -> None:
    async with online(hub, Echo) as agent, web(hub.url) as client:
        path = f"{rpc_path(agent.handle)}/v1{WELL_KNOWN}"
        urls = [url + path for url in hub.urls] * 8
        cards = await asyncio.gather(*(client.get(url) for url in urls))
        keys = (await client.get("/.well-known/jwks.json")).json()["keys"]
    assert {len(one.json()["signatures"]) for one in cards} == {1}
    assert {one.json()["signatures"][0]["protected"] for one in cards} == {
        cards[0].json()["signatures"][0]["protected"]
    }
    assert len(keys) == 1
