"""Tokens that sign in to the gateway, their roles, and their expiry."""

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
from tests.gateway.client import EchoSeat, GatewayClient, change_policy, owner_of, publish, team
from tests.gateway.client import code_of as code_of_frame

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


LIST: tuple[str, Json] = ("discovery", {"action": "list"})
ROLES: list[tuple[Json, str]] = [
    ({}, "operator"),
    ({"scopes": ["ask"]}, "operator"),
    ({"scopes": ["read"]}, "observer"),
    ({"scopes": ["ask", "read"], "format": "jwt", "expires_in": 3600}, "operator"),
    ({"scopes": ["read"], "format": "jwt", "expires_in": 3600}, "observer"),
    ({"scopes": ["connect:token-roles/coder"], "format": "jwt", "expires_in": 3600}, "agent"),
]


async def code_of(client: GatewayClient, type_name: str, content: Json | None = None, **more: Any) -> int:
    """The code of the error that a frame is answered with; 0: it was served."""
    return code_of_frame(await client.ask(type_name, content, **more))[0]


async def refused_with(client: GatewayClient) -> tuple[int | None, int]:
    """The code that a connection is closed with, and that of the error before."""
    return await client.closed(), code_of_frame(client.frames[-1])[0]


async def test_scopes_decide_the_role(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    for body, role in ROLES:
        token = await mint(embedded_hub, "token-roles", **body)
        async with GatewayClient(embedded_hub.url, token["token"]) as client:
            content = (await client.find("auth-response"))["content"]
        with subtests.test(body=body):
            assert (content["status"], content["role"]) == ("authenticated", role)
            assert ("expiresAt" in content) == ("expires_in" in body)


async def test_a_token_that_is_for_something_else_does_not_sign_in(embedded_hub: HubProcess) -> None:
    token = await mint(embedded_hub, "token-publisher", scopes=["publish"])
    async with GatewayClient(embedded_hub.url, token["token"]) as client:
        assert await refused_with(client) == (4001, 5002)


async def test_a_token_to_connect_takes_its_seat_and_no_other(embedded_hub: HubProcess) -> None:
    token = (await mint(embedded_hub, "token-seat", scopes=["connect:token-seat/coder"]))["token"]
    async with GatewayClient(embedded_hub.url, token) as coder:
        content = (await coder.find("auth-response"))["content"]
        assert (content["agent"], content["role"]) == ("coder", "agent")
        assert await coder.discover() == {"coder": "online"}
        assert await code_of(coder, *LIST, **{"from": "tester"}) == 5004
    async with GatewayClient(embedded_hub.url, token, agentId="tester") as tester:
        assert await refused_with(tester) == (1008, 5004)
    async with web(embedded_hub.url, headers=bearer(token)) as client:
        for path in ("/api/v1/me", "/v1/models", "/api/v1/questions"):
            assert (await client.get(path)).status_code == 403, path


async def test_the_seat_of_another_user_is_taken_by_no_token(embedded_hub: HubProcess) -> None:
    """Also not by a token that was made before minting refused such tokens."""
    token = await mint(embedded_hub, "token-seat", scopes=["connect:token-seat/coder"])
    sql(embedded_hub, "UPDATE accounts_credential SET only_agent = 'another/coder' WHERE id = ?", token["id"])
    async with GatewayClient(embedded_hub.url, token["token"]) as stranger:
        assert await refused_with(stranger) == (1008, 5004)


async def test_connect_names_its_agent(embedded_hub: HubProcess) -> None:
    async with web(embedded_hub.url) as client:
        headers = bearer(embedded_hub.mint("token-seat", "session"))
        for scopes in (["connect"], ["connect:a/b", "publish"]):
            body = {"name": "x", "scopes": scopes}
            assert (await client.post("/api/v1/auth/apps/mint", json=body, headers=headers)).status_code == 400


async def test_a_token_for_one_agent_messages_it_and_does_nothing_else(embedded_hub: HubProcess) -> None:
    owner = "one-agent"
    async with team(embedded_hub, owner, alpha=EchoSeat, beta=EchoSeat) as (_, beta):
        await publish(embedded_hub, owner, "alpha")
        token = (await mint(embedded_hub, owner, scopes=[f"ask:{owner}/alpha"]))["token"]
        async with GatewayClient(embedded_hub.url, token) as caller:
            assert (await caller.shake_hands())["content"]["availableAgents"] == []
            reply = await caller.send_message(f"@{owner}/alpha", "hello")
            assert reply["content"]["content"] == "echo: hello"
            assert code_of_frame(await caller.send_message("beta", "hello"))[0] == 3001
            assert await code_of(caller, *LIST) == 5004
            for service in ("inbox.get", "inbox.unread", "inbox.count", "inbox.list", "inbox.clear"):
                asked = {"service": service, "params": {"agent": "beta"}}
                assert await code_of(caller, "request", asked) == 5004, service
            for agent in ("beta", "absent"):
                asked = {"service": "inbox.send", "params": {"agent": agent, "content": "hello"}}
                assert await code_of(caller, "request", asked) == 3001
            await change_policy(embedded_hub, owner, storesTold=False)
            told: Json = {"role": "user", "content": "psst"}
            assert await code_of(caller, "message", told, agent="beta") == 3001
            assert beta.of("message") == []


async def test_an_expired_token_is_5003_and_another_one_goes_on(embedded_hub: HubProcess) -> None:
    login = "expired"
    old = await mint(embedded_hub, login, scopes=["ask", "read"], format="jwt", expires_in=3600)
    fresh = await mint(embedded_hub, login, scopes=["ask", "read"], format="jwt", expires_in=3600)
    expire(embedded_hub, old, -1)
    async with GatewayClient(embedded_hub.url, old["token"]) as client:
        assert (await client.find("error"))["content"]["code"] == 5003
        await client.send("auth", {"token": fresh["token"]})
        await client.find("auth-response", lambda one: one["content"]["status"] == "authenticated")
        await revoke(embedded_hub, login, old)
        assert await code_of(client, *LIST) == 0
        await revoke(embedded_hub, login, fresh)
        assert await client.closed() == 4001


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
        await coder.settle()  # a ping needs none
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
        team(embedded_hub, login, alpha=EchoSeat) as (alpha,),
        owner_of(embedded_hub, login) as client,
        owner_of(embedded_hub, login) as owner,
    ):
        for watcher in (client, owner):
            for channel in ("agent:alpha:inbox", "agent:status"):
                assert await code_of(watcher, "subscribe", {"channel": channel}) == 0
        await client.send("auth", {"token": observer})
        await client.find("auth-response", lambda one: one["content"].get("role") == "observer")
        await owner.send_message("alpha", "for the inbox")
        await alpha.send("status", {"status": "idle"})
        await owner.find("event")
        await client.find("status", lambda one: one["content"]["status"] == "idle")
        assert client.of("event") == []


async def test_no_agent_has_the_name_of_the_hub_or_of_all_agents(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("reserved-names", "channel")
    for name in ("gateway", "broadcast"):
        async with GatewayClient(embedded_hub.url, token, agentId=name) as client:
            assert await refused_with(client) == (1008, 5004)
        async with GatewayClient(embedded_hub.url, token) as client:
            await client.find("auth-response")
            assert await code_of(client, *LIST, **{"from": name}) == 5004


async def test_without_a_new_token_the_connection_is_closed_after_some_time(embedded_hub: HubProcess) -> None:
    async def is_closed(scopes: list[str]) -> None:
        token = await mint(embedded_hub, "late", scopes=scopes)
        expire(embedded_hub, token, 2)
        async with GatewayClient(embedded_hub.url, token["token"]) as client:
            assert await refused_with(client) == (4001, 5003)

    await asyncio.gather(is_closed(["ask", "read"]), is_closed(["connect:late/coder"]))
