"""Which tokens sign in to the gateway, with which role, and what happens when they expire."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.gateway.client import EchoSeat, GatewayClient, publish

_numbers = count(1)


async def mint(hub: HubProcess, login: str, **body: Any) -> Json:
    """An app token over REST: its text and its id."""
    async with web(hub.url) as client:
        given = {"name": f"token {next(_numbers)}", **body}
        headers = bearer(hub.mint(login, "session"))
        made = await client.post("/api/v1/auth/apps/mint", json=given, headers=headers)
        assert made.status_code == 201, made.text
        return dict(made.json())


async def revoke(hub: HubProcess, login: str, token: Json) -> None:
    async with web(hub.url) as client:
        address = f"/api/v1/tokens/{token['id']}"
        assert (await client.delete(address, headers=bearer(hub.mint(login, "session")))).status_code == 204


def expire(hub: HubProcess, token: Json, in_s: float) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=in_s)
    text = moment.replace(tzinfo=None).isoformat(" ", "microseconds")
    sql(hub, "UPDATE accounts_credential SET expires_at = ? WHERE id = ?", text, token["id"])


async def code_of(client: GatewayClient, type_name: str, content: Json | None = None, **more: Any) -> int:
    """The code of the error that a frame is answered with; 0: it was served."""
    correlation_id = f"code-{next(_numbers)}"
    metadata = {"correlationId": correlation_id} | more.pop("metadata", {})
    await client.send(type_name, content, metadata=metadata, **more)

    def is_it(frame: Json) -> bool:
        return frame.get("metadata", {}).get("correlationId") == correlation_id

    await eventually(lambda: _is_there(client, is_it), f"an answer to {type_name}")
    content = next(one for one in client.frames if is_it(one))["content"]
    error = content if "code" in content else content.get("error", {})
    return int(error.get("code", 0))


async def _is_there(client: GatewayClient, is_it: Any) -> bool:
    return any(map(is_it, client.frames))


LIST: tuple[str, Json] = ("discovery", {"action": "list"})


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ({}, "operator"),
        ({"scopes": ["ask"]}, "operator"),
        ({"scopes": ["read"]}, "observer"),
        ({"scopes": ["ask", "read"], "format": "jwt", "expires_in": 3600}, "operator"),
        ({"scopes": ["read"], "format": "jwt", "expires_in": 3600}, "observer"),
        ({"scopes": ["connect:token-roles/coder"], "format": "jwt", "expires_in": 3600}, "agent"),
    ],
)
async def test_scopes_decide_the_role(embedded_hub: HubProcess, body: Json, role: str) -> None:
    token = await mint(embedded_hub, "token-roles", **body)
    async with GatewayClient(embedded_hub.url, token["token"]) as client:
        content = (await client.find("auth-response"))["content"]
    assert (content["status"], content["role"]) == ("authenticated", role)
    assert ("expiresAt" in content) == ("expires_in" in body)


async def test_a_token_that_is_for_something_else_does_not_sign_in(embedded_hub: HubProcess) -> None:
    token = await mint(embedded_hub, "token-publisher", scopes=["publish"])
    async with GatewayClient(embedded_hub.url, token["token"]) as client:
        assert await client.closed() == 4001
        assert client.frames[-1]["content"]["code"] == 5002


async def test_a_token_to_connect_takes_its_seat_and_no_other(embedded_hub: HubProcess) -> None:
    token = (await mint(embedded_hub, "token-seat", scopes=["connect:token-seat/coder"]))["token"]
    async with GatewayClient(embedded_hub.url, token) as coder:
        content = (await coder.find("auth-response"))["content"]
        assert (content["agent"], content["role"]) == ("coder", "agent")
        assert await coder.discover() == {"coder": "online"}
        assert await code_of(coder, *LIST, **{"from": "tester"}) == 5004
    async with GatewayClient(embedded_hub.url, token, agentId="tester") as tester:
        assert await tester.closed() == 1008
        assert tester.frames[-1]["content"]["code"] == 5004
    async with web(embedded_hub.url, headers=bearer(token)) as client:
        for path in ("/api/v1/me", "/v1/models", "/api/v1/questions"):
            assert (await client.get(path)).status_code == 403, path


async def test_the_seat_of_another_user_is_taken_by_no_token(embedded_hub: HubProcess) -> None:
    """Also not by a token that was made before minting refused such tokens."""
    token = await mint(embedded_hub, "token-seat", scopes=["connect:token-seat/coder"])
    sql(embedded_hub, "UPDATE accounts_credential SET only_agent = 'another/coder' WHERE id = ?", token["id"])
    async with GatewayClient(embedded_hub.url, token["token"]) as stranger:
        assert await stranger.closed() == 1008
        assert stranger.frames[-1]["content"]["code"] == 5004


async def test_connect_names_its_agent(embedded_hub: HubProcess) -> None:
    async with web(embedded_hub.url) as client:
        headers = bearer(embedded_hub.mint("token-seat", "session"))
        for scopes in (["connect"], ["connect:a/b", "publish"]):
            body = {"name": "x", "scopes": scopes}
            assert (await client.post("/api/v1/auth/apps/mint", json=body, headers=headers)).status_code == 400


async def test_a_token_for_one_agent_messages_it_and_does_nothing_else(embedded_hub: HubProcess) -> None:
    owner = "one-agent"
    channel = embedded_hub.mint(owner, "channel")
    async with (
        EchoSeat(embedded_hub.url, channel, agentId="alpha") as alpha,
        EchoSeat(embedded_hub.url, channel, agentId="beta") as beta,
    ):
        await alpha.find("auth-response")
        await beta.find("auth-response")
        await publish(embedded_hub, owner, "alpha")
        token = (await mint(embedded_hub, owner, scopes=[f"ask:{owner}/alpha"]))["token"]
        async with GatewayClient(embedded_hub.url, token) as caller:
            assert (await caller.shake_hands())["content"]["availableAgents"] == []
            reply = await caller.send_message(f"@{owner}/alpha", "hello")
            assert reply["content"]["content"] == "echo: hello"
            assert (await caller.send_message("beta", "hello"))["content"]["code"] == 3001
            assert await code_of(caller, *LIST) == 5004
            for service in ("inbox.get", "inbox.unread", "inbox.count", "inbox.list", "inbox.clear"):
                asked = {"service": service, "params": {"agent": "beta"}}
                assert await code_of(caller, "request", asked) == 5004, service
            for agent in ("beta", "absent"):
                asked = {"service": "inbox.send", "params": {"agent": agent, "content": "hello"}}
                assert await code_of(caller, "request", asked) == 3001
            async with web(embedded_hub.url, headers=bearer(embedded_hub.mint(owner, "session"))) as rest:
                changed = await rest.patch("/api/v1/team/policy", json={"storesTold": False})
                assert changed.status_code == 200
            told: Json = {"role": "user", "content": "psst"}
            for _ in range(5):  # a change of the rules counts within a second
                assert await code_of(caller, "message", told, agent="beta") == 3001
                await asyncio.sleep(0.25)
            assert [one for one in beta.frames if one["type"] == "message"] == []


async def test_inboxes_are_read_with_a_token_that_reads(embedded_hub: HubProcess) -> None:
    owner = "inbox-scopes"
    async with GatewayClient(embedded_hub.url, embedded_hub.mint(owner, "channel"), agentId="alpha") as alpha:
        await alpha.find("auth-response")
    asked = {"service": "inbox.get", "params": {"agent": "alpha"}}
    for scopes, code in ((["ask"], 5004), (["read"], 5004), (["ask", "read"], 0)):
        token = (await mint(embedded_hub, owner, scopes=scopes))["token"]
        async with GatewayClient(embedded_hub.url, token) as client:
            await client.find("auth-response")
            assert await code_of(client, "request", asked) == code, scopes


async def test_an_expired_token_is_5003_and_another_one_goes_on(embedded_hub: HubProcess) -> None:
    login = "expired"
    old = await mint(embedded_hub, login, scopes=["ask", "read"], format="jwt", expires_in=3600)
    fresh = await mint(embedded_hub, login, scopes=["ask", "read"], format="jwt", expires_in=3600)
    expire(embedded_hub, old, -1)
    async with GatewayClient(embedded_hub.url, old["token"]) as client:
        assert (await client.find("error"))["content"]["code"] == 5003
        await client.send("auth", {"token": fresh["token"]})
        await client.find("auth-response", lambda one: one["content"]["status"] == "authenticated")
        assert await code_of(client, *LIST) == 0


async def test_a_token_that_expires_can_be_renewed_by_one_of_the_same_agent(embedded_hub: HubProcess) -> None:
    login = "renewing"
    scopes = [f"connect:{login}/coder"]
    old = await mint(embedded_hub, login, scopes=scopes)
    fresh = await mint(embedded_hub, login, scopes=scopes, format="jwt", expires_in=3600)
    wrong = await mint(embedded_hub, login, scopes=[f"connect:{login}/tester"])
    expire(embedded_hub, old, 2)
    async with GatewayClient(embedded_hub.url, old["token"]) as coder:
        await coder.find("auth-response")

        async def has_expired() -> bool:
            return await code_of(coder, *LIST) == 5003

        await eventually(has_expired, "the token expires")
        await coder.send("ping")
        await coder.find("pong")
        await coder.send("auth", {"token": wrong["token"]})
        await coder.find("auth-response", lambda one: one["content"]["status"] == "rejected")
        assert await code_of(coder, *LIST) == 5003
        await coder.send("auth", {"token": fresh["token"]})
        await coder.find("auth-response", lambda one: "expiresAt" in one["content"])
        assert await code_of(coder, *LIST) == 0
        [row] = sql(
            embedded_hub,
            "SELECT c.credential_id, s.credential_id FROM agents_connection c JOIN agents_session s"
            " ON s.id = c.session_id JOIN accounts_user u ON u.id = s.owner_id WHERE u.login = ?",
            login,
        )
        assert row == (fresh["id"], fresh["id"])
        await revoke(embedded_hub, login, old)
        assert await code_of(coder, *LIST) == 0
        await revoke(embedded_hub, login, fresh)
        assert await coder.closed() == 4001


async def test_a_token_that_may_less_ends_subscriptions_of_the_one_before(embedded_hub: HubProcess) -> None:
    login = "lesser-token"
    observer = (await mint(embedded_hub, login, scopes=["read"]))["token"]
    async with (
        EchoSeat(embedded_hub.url, embedded_hub.mint(login, "channel"), agentId="alpha") as alpha,
        GatewayClient(embedded_hub.url, embedded_hub.mint(login, "session")) as client,
        GatewayClient(embedded_hub.url, embedded_hub.mint(login, "session")) as owner,
    ):
        await alpha.find("auth-response")
        for watcher in (client, owner):
            for channel in ("agent:alpha:inbox", "agent:status"):
                assert await code_of(watcher, "subscribe", {"channel": channel}) == 0
        await client.send("auth", {"token": observer})
        await client.find("auth-response", lambda one: one["content"].get("role") == "observer")
        await owner.send_message("alpha", "for the inbox")
        await alpha.send("status", {"status": "idle"})
        await owner.find("event")
        await client.find("status", lambda one: one["content"]["status"] == "idle")
        assert [one for one in client.frames if one["type"] == "event"] == []


@pytest.mark.parametrize("name", ["gateway", "broadcast"])
async def test_no_agent_has_the_name_of_the_hub_or_of_all_agents(embedded_hub: HubProcess, name: str) -> None:
    token = embedded_hub.mint("reserved-names", "channel")
    async with GatewayClient(embedded_hub.url, token, agentId=name) as client:
        assert await client.closed() == 1008
        assert client.frames[-1]["content"]["code"] == 5004
    async with GatewayClient(embedded_hub.url, token) as client:
        await client.find("auth-response")
        assert await code_of(client, *LIST, **{"from": name}) == 5004


async def test_without_a_new_token_the_connection_is_closed_after_some_time(embedded_hub: HubProcess) -> None:
    async def is_closed(scopes: list[str]) -> None:
        token = await mint(embedded_hub, "late", scopes=scopes)
        expire(embedded_hub, token, 2)
        async with GatewayClient(embedded_hub.url, token["token"]) as client:
            assert await client.closed() == 4001
            assert client.frames[-1]["content"]["code"] == 5003

    await asyncio.gather(is_closed(["ask", "read"]), is_closed(["connect:late/coder"]))


async def test_a_renewed_client_ends_with_its_new_token(embedded_hub: HubProcess) -> None:
    login = "renewed-client"
    old = await mint(embedded_hub, login, scopes=["read"])
    fresh = await mint(embedded_hub, login, scopes=["ask", "read"])
    async with GatewayClient(embedded_hub.url, old["token"]) as client:
        assert await code_of(client, *LIST) == 0
        await client.send("auth", {"token": fresh["token"]})
        await client.find("auth-response", lambda one: one["content"].get("role") == "operator")
        await revoke(embedded_hub, login, old)
        assert await code_of(client, *LIST) == 0
        await revoke(embedded_hub, login, fresh)
        assert await client.closed() == 4001
