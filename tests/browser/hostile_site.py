"""Rows of one owner with hostile words in every field, as requests and frames write them."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

from lab.agents import Echo, publish
from lab.callers import Json, bearer, send, web
from lab.hub_process import HubProcess
from tests.browser.hostile import Hostile
from tests.browser.scene import find_ask, make_rows
from tests.browser.sessions import api, request_permission, tail
from tests.gateway.client import GatewayClient


@asynccontextmanager
async def written(site: HubProcess, hostile: Hostile) -> AsyncIterator[Json]:
    """An agent, a session beside it, a token and a webhook of mallory's, with hostile words in every field."""
    token, channel = site.mint("mallory", "session"), site.mint("mallory", "channel")
    async with (
        Echo(site.url, channel) as agent,
        Echo(site.url, channel, host=hostile.text(100), cwd=hostile.text(100)) as session,
    ):
        assert agent.session_id is not None
        fields: Json = {name: hostile.text(4_096) for name in ("description", "claudeMd", "personalizationPrompt")}
        fields |= {
            "name": hostile.text(120),
            "tagline": hostile.text(160),
            "suggestedPrompts": [hostile.text(400)],
        }
        published = await publish(site, token, agent.session_id, f"hostile-{agent.register['pid']}", **fields)
        body = webhook(hostile) | {"events": ["agent.dispatched"], "filters": None}
        told = await api(site, "mallory", "POST", "/webhooks", body)
        task = await send(site.url, published["handle"], hostile.text(), token)
        shares = [
            await api(site, "mallory", "POST", "/shares", {"taskId": task["id"], "audience": audience})
            for audience in ("everyone", "link")
        ]
        threads = await api(site, "mallory", "GET", "/threads?state=all")
        deliveries = await api(site, "mallory", "GET", f"/webhooks/{told['id']}/deliveries")
        await happen(session, hostile)
        await upload(site, str(session.session_id), hostile)
        yield {
            "agent": published["id"],
            "handle": published["handle"],
            "session": session.session_id,
            "token": (await api(site, "mallory", "POST", "/tokens/channel", {"name": hostile.text(64)}))["id"],
            "told": told["id"],
            "shared": shares[0]["id"],
            "link": shares[1]["url"].rpartition("/")[2],
            "thread": threads["items"][0]["id"],
            "ask": await find_ask(site, "mallory", published["handle"]),
            "reported": await report(site, published["handle"], hostile),
            "delivery": deliveries["items"][0]["id"],
            "webhook": (await api(site, "mallory", "POST", "/webhooks", webhook(hostile)))["id"],
            "proposal": await deliberate(site, channel, hostile),
            **await asyncio.to_thread(make_rows, site, f"make_hostile('mallory', {hostile.vectors!r})"),
        }


async def report(site: HubProcess, handle: str, hostile: Hostile) -> str:
    """Let a visitor ask the agent, and report a problem to its owner; the id of the ask."""
    await send(site.url, handle, hostile.text(), site.mint("visitor", "session"))
    ask = await find_ask(site, "visitor", handle)
    await api(site, "visitor", "POST", f"/questions/{ask}/problem", {"text": hostile.text(2_000)})
    return ask


async def deliberate(site: HubProcess, channel: str, hostile: Hostile) -> int:
    """Let agents of a team propose, and vote with a reason; the number of the proposal."""
    about = {"correlationId": str(uuid.uuid4())}
    async with GatewayClient(site.url, channel, agentId="alpha") as alpha:
        said = {"proposal": hostile.text(), "reasoning": hostile.text()}
        await alpha.send("proposal", said, metadata=about)
        await alpha.find("response")
        await alpha.send("vote", {"vote": "approve", "reasoning": hostile.text()}, metadata=about)
        await alpha.find("response", lambda frame: "vote" in frame["content"].get("result", {}))
    number: int = (await api(site, "mallory", "GET", "/team/proposals"))["items"][0]["id"]
    return number


async def happen(session: Echo, hostile: Hostile) -> None:
    """Let an agent's program report its work."""
    said = {"tool_name": hostile.text(), "message": hostile.text(), "plan": {hostile.text(): hostile.text()}}
    await tail(session, hostile.text(60), **said)
    request_id = "".join(filter(str.isprintable, hostile.text(100)))  # the hub takes no others
    await request_permission(session, request_id, tool=hostile.text(200), preview=hostile.text())


async def upload(site: HubProcess, session: str, hostile: Hostile) -> None:
    # Django takes 1,024 bytes of headers of a part, in which some characters take three.
    name = hostile.text(700).translate({ord(one): "_" for one in "/\\\t\n\r\u2028\u2029\u202e"})
    async with web(site.url, headers=bearer(site.mint("mallory", "session"))) as owner:
        answer = await owner.post(f"/api/v1/sessions/{session}/files", files={"file": (name, b"x", "text/html")})
    assert answer.status_code == 201, answer.text


def webhook(hostile: Hostile) -> Json:
    address = f"http://127.0.0.1:9/{quote(hostile.text(600))}"
    return {"url": address, "events": [hostile.word(64)], "filters": {"routingName": hostile.text(80)}}
