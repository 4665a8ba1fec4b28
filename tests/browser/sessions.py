"""Sessions to look at in a browser: an agent's program at one end, people whom it is shared with at the other."""

import json
from typing import Any

from playwright.async_api import Locator

from lab.callers import Json, bearer, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from tests.browser.visitor import Visitor


async def share(site: HubProcess, peer: ChannelAgent, login: str, role: str, *, owner: str = "owner") -> None:
    """Lend the session of a peer to a login."""
    site.mint(login, "session")  # the hub knows the login from now on
    await api(site, owner, "POST", f"/sessions/{peer.session_id}/shares", {"login": login, "role": role})


async def api(site: HubProcess, login: str, method: str, path: str, body: Json | None = None) -> Json:
    """One call of the native API."""
    headers = bearer(site.mint(login, "session"))
    async with web(site.url, headers=headers) as client:
        answer = await client.request(method, f"/api/v1{path}", json=body)
    assert answer.is_success, answer.text
    found: Json = answer.json() if answer.content else {}
    return found


async def tail(peer: ChannelAgent, type_: str, **payload: Any) -> None:
    await peer.send(type="tail_event", eventType=type_, payload=payload, ts=None)


async def request_permission(
    peer: ChannelAgent, request_id: str, tool: str = "Bash", preview: str = "rm -r build"
) -> None:
    await peer.send(type="permission_request", requestId=request_id, tool=tool, inputPreview=preview)


async def watch(visitor: Visitor, peer: ChannelAgent, login: str) -> None:
    """Sign in and open the session; the live view has begun."""
    await visitor.sign_in(login)
    await visitor.open(f"/desk/sessions/{peer.session_id}")
    await is_live(visitor)


async def is_live(visitor: Visitor) -> None:
    await visitor.page.locator("#link .state.on").wait_for()


def line(visitor: Visitor, text: str, look: str = "") -> Locator:
    """A line of the transcript that holds a text."""
    return visitor.page.locator(f"#rows > li{look}").filter(has_text=text)


async def prompt(visitor: Visitor, text: str) -> None:
    await visitor.page.get_by_label("Prompt for the agent").fill(text)
    await visitor.page.get_by_role("button", name="Send", exact=True).click()


async def ids(visitor: Visitor) -> list[str]:
    """The lines in their order."""
    found = await visitor.page.locator("#rows > li").evaluate_all("(all) => all.map((one) => one.id)")
    return json.loads(json.dumps(found))
