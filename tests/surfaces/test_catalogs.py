"""The catalogs of a running hub, and the keys at its root: reachable without a token, about public agents
alone.
"""

import re
from typing import Any

import httpx

from lab.agents import Echo, online
from lab.callers import web
from lab.hub_process import HubProcess
from tests.surfaces.test_cards import patch

Json = dict[str, Any]
AI_CATALOG, ARD = "/.well-known/ai-catalog.json", "/.well-known/ard.json"
URN = re.compile(
    r"urn:air:([a-zA-Z0-9.-]+)(?::([a-zA-Z0-9._:-]+))?:([a-zA-Z0-9._-]+)"
)  # of ARD's conformance tool


async def get(hub: HubProcess, path: str, verb: str = "GET", **headers: str) -> httpx.Response:
    async with web(hub.url) as client:
        return await client.request(verb, path, headers=headers)


async def entries(hub: HubProcess, path: str) -> dict[str, Json]:
    """The entries of a catalog, by address; follows the catalogs it nests."""
    listed = (await get(hub, path)).json()["entries"]
    return {one["url"]: one for one in listed}


async def test_both_catalogs_list_an_agent_by_its_card(hub: HubProcess) -> None:
    fields = {"name": "rust expert", "tagline": "knows lifetimes", "suggestedPrompts": ["why?", "how?"]}
    async with online(hub, Echo, agent=fields) as agent:
        owner, _, slug = agent.handle.partition("/")
        card = f"{hub.url}/api/a2a/v1/agents/{agent.handle}/.well-known/agent-card.json"
        for path in (AI_CATALOG, ARD):
            entry = (await entries(hub, path))[card]
            assert entry["type"] == "application/a2a-agent-card+json"
            assert (entry["displayName"], entry["description"]) == ("rust expert", "knows lifetimes")
            assert entry["identifier"] == f"urn:air:127.0.0.1:agent:{owner}:{slug}"
            assert URN.fullmatch(entry["identifier"])
            assert "data" not in entry
            assert entry.get("representativeQueries") == (["why?", "how?"] if path == ARD else None)
        assert (await get(hub, card.removeprefix(hub.url))).json()["name"] == "rust expert"


async def test_catalogs_are_documents_of_the_drafts(hub: HubProcess) -> None:
    for path, media_type in ((AI_CATALOG, "application/ai-catalog+json"), (ARD, "application/json")):
        answer = await get(hub, path)
        assert answer.headers["content-type"] == media_type
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.json()["specVersion"] == "1.0"
        assert answer.json()["host"]["displayName"]
        etag = {"If-None-Match": answer.headers["etag"]}
        async with online(hub, Echo):
            assert (await get(hub, path, **etag)).status_code == 200
        assert (await get(hub, path, "HEAD")).content == b""


async def test_an_agent_leaves_the_catalogs_with_the_next_request(hub: HubProcess) -> None:
    async with online(hub, Echo) as agent:
        card = f"{hub.url}/api/a2a/v1/agents/{agent.handle}/.well-known/agent-card.json"
        for hidden, shown in (
            ({"status": "draft"}, {"status": "published"}),
            ({"access": "limited"}, {"access": "public"}),
            ({"access": "private"}, {"access": "public"}),
        ):
            await patch(hub, agent.agent["id"], **hidden)
            assert card not in await entries(hub, AI_CATALOG)
            assert card not in await entries(hub, ARD)
            await patch(hub, agent.agent["id"], **shown)
            assert card in await entries(hub, AI_CATALOG)


async def test_the_root_is_no_agent_and_says_where_they_are(embedded_hub: HubProcess) -> None:
    answer = await get(embedded_hub, "/.well-known/agent-card.json")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert AI_CATALOG in answer.json()["message"]


async def test_hostile_bounds_of_a_part_do_no_harm(embedded_hub: HubProcess) -> None:
    refused, read = ("%00", "a%0A", "x" * 200), ("%ED%A0%80", "%FF", "")
    for bad in (*refused, *read):
        for query in (f"from={bad}", f"from=a&to={bad}"):
            for path in (AI_CATALOG, ARD):
                answer = await get(embedded_hub, f"{path}?{query}")
                assert answer.status_code == (400 if bad in refused else 200), query


async def test_the_keys_are_public_and_nothing_of_them_is_private(hub: HubProcess) -> None:
    answers = [await get(hub, "/.well-known/jwks.json") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[0].headers["cache-control"] == "public, max-age=300"
    for key in answers[0].json()["keys"]:
        assert set(key) == {"kty", "crv", "x", "y", "kid", "alg", "use"}
