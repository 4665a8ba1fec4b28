"""Sessions: what messages leave in them, over the socket and across processes and restarts."""

import asyncio
from typing import Any

from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, GatewayClient


async def ask(client: GatewayClient, service: str, **params: Any) -> Json:
    """The result of a service of sessions."""
    content = await client.request(f"sessions.{service}", **params)
    assert "result" in content, content
    result: Json = content["result"]
    return result


async def refused(client: GatewayClient, service: str, **params: Any) -> tuple[int, str]:
    """The code of its error, and the reason or the field."""
    error = (await client.request(f"sessions.{service}", **params))["error"]
    return error["code"], error.get("reason", error.get("field", ""))


async def said(client: GatewayClient, agent: str, session_id: str, count: int) -> list[tuple[str, object]]:
    """Role and content of the entries of a session, when it has so many."""

    async def read() -> list[Json]:
        content = await client.request("sessions.get", agent=agent, sessionId=session_id)
        entries: list[Json] = content.get("result", {}).get("entries", [])
        return entries

    await eventually(lambda: _is_long(read, count), f"{count} entries in {session_id} of {agent}")
    return [(one["role"], one["content"]) for one in await read()]


async def _is_long(read: Any, count: int) -> bool:
    return len(await read()) >= count


async def test_messages_of_a_team_are_entries_at_both_ends(hub: HubProcess) -> None:
    token, far = hub.mint("scribe", "channel"), hub.urls[-1]
    operator = GatewayClient(hub.url, hub.mint("scribe", "session"))
    alpha, beta = EchoSeat(hub.url, token, agentId="alpha"), EchoSeat(far, token, agentId="beta")
    async with alpha, beta, operator:
        await asyncio.gather(alpha.find("auth-response"), beta.find("auth-response"))
        await alpha.send_message("beta", "hi", session="s-1")
        await alpha.send_message("beta", {"plan": [1, 2]}, session="s-1")
        both = [("user", "hi"), ("agent", "echo: hi"), ("user", {"plan": [1, 2]}), ("agent", {"plan": [1, 2]})]
        for agent in ("alpha", "beta"):
            assert await said(operator, agent, "s-1", 4) == both
        await operator.send_message("beta", "from outside")
        listed = (await ask(operator, "list", agent="beta"))["sessions"]
        (own,) = [one["id"] for one in listed if one["id"] != "s-1"]
        await said(operator, "beta", own, 2)
        await operator.send_message("beta", "again")
        assert len(await said(operator, "beta", own, 4)) == 4  # one session for each pair
        assert [one["id"] for one in (await ask(beta, "list"))["sessions"]] == [one["id"] for one in listed]
