"""The directory in a browser: found by words and filters, in pages, in each of its empty states."""

import httpx
import pytest
from playwright.async_api import Browser

from lab.agents import Echo, Held, online, publish
from lab.callers import bearer, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.browser.chrome import IN_BROWSER
from tests.browser.vectors import in_turn
from tests.browser.visitor import Visitor, visiting

pytestmark = IN_BROWSER


async def names_listed(visitor: Visitor) -> list[str]:
    return await visitor.page.locator(".agent h3").all_inner_texts()


async def check_anew(visitor: Visitor) -> None:
    """Check a page that links led to as if it were the first one."""
    await visitor.go(visitor.page.url.removeprefix(visitor.url))
    await visitor.check()


async def test_an_agent_is_found_by_words_and_opened_by_keyboard(visitor: Visitor, site: HubProcess) -> None:
    fields = {"name": "Tea sommelier", "tagline": "Knows oolong"}
    async with online(site, Echo, agent=fields) as sommelier, online(site, Echo):
        await visitor.go("/")
        await visitor.page.get_by_role("link", name="Agents", exact=True).click()
        await visitor.page.get_by_label("Search by handle").fill("oolong TEA")
        await visitor.page.keyboard.press("Enter")
        await visitor.page.get_by_text("1 agent found").wait_for()
        assert await names_listed(visitor) == [f"@{sommelier.handle}"]
        await visitor.check_calm()
        await visitor.page.get_by_role("link", name=f"@{sommelier.handle}").press("Enter")
        await visitor.page.get_by_role("heading", name="Tea sommelier").wait_for()


async def test_filters_show_who_is_online_and_ones_own(visitor: Visitor, site: HubProcess) -> None:
    async with (
        online(site, Echo, agent={"tagline": "filterable"}) as here,
        online(site, Echo, agent={"tagline": "filterable"}) as gone,
    ):
        await gone.leave()
        await visitor.sign_in("alice", then="/agents")
        await visitor.page.get_by_label("Search by handle").fill("filterable")

        async def only_the_connected() -> bool:
            await visitor.page.get_by_label("Online only").check()
            await visitor.page.get_by_role("button", name="Search").click()
            return await names_listed(visitor) == [f"@{here.handle}"]

        await eventually(only_the_connected, "the one that left is no longer listed")
        await visitor.page.get_by_label("Mine").check()
        await visitor.page.get_by_role("button", name="Search").click()
        await visitor.page.get_by_role("heading", name="Nothing matches").wait_for()
        await visitor.check_calm()
        await visitor.page.get_by_role("link", name="Clear the search").first.click()
        await visitor.page.wait_for_url(f"{site.url}/agents")
        assert not await visitor.page.get_by_label("Online only").is_checked()


async def test_an_agent_that_answers_another_caller_is_busy(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Held) as held, web(site.url, headers=bearer(site.mint("bob", "session"))) as bob:
        asked = {"messageId": "m-busy", "role": "ROLE_USER", "parts": [{"text": "wait"}]}
        body = {"jsonrpc": "2.0", "method": "SendStreamingMessage", "params": {"message": asked}, "id": "1"}
        async with bob.stream("POST", f"/api/a2a/v1/agents/{held.handle}", json=body):
            await held.heard("prompt")
            await visitor.go(f"/agents?q={held.handle}")
            assert await visitor.page.locator(".agent .state").inner_text() == "busy"
            await visitor.check_calm()
        held.release.set()


async def test_an_empty_hub_says_how_to_begin_and_many_agents_come_in_pages(
    browser: Browser, make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), DEV_LOGIN=1)
    async with visiting(browser, hub.url) as visitor:
        for path in ("/", "/demos/a2a/", "/agents"):
            await visitor.go(path)
            assert await visitor.page.locator(".empty").get_by_role("link", name="Connect an agent").is_visible()
            await visitor.check()
        await visitor.page.get_by_role("heading", name="No agent is published yet").wait_for()
        await publish_many(hub, 25)
        await visitor.sign_in("alice", then="/agents")
        assert len(await names_listed(visitor)) == 24
        await visitor.check_calm()
        await visitor.page.get_by_role("link", name="Next").click()
        await visitor.page.get_by_text("Page 2 of 2").wait_for()
        assert await names_listed(visitor) == ["@owner/many-24"]
        await check_anew(visitor)
        await visitor.page.get_by_label("Mine").check()
        await visitor.page.get_by_role("button", name="Search").click()
        await visitor.page.get_by_role("heading", name="You have published no agent").wait_for()
        await visitor.check_calm()


async def publish_many(hub: HubProcess, count: int) -> None:
    for number in range(count):
        async with Echo(hub.url, hub.mint("owner", "channel")) as peer:
            assert peer.session_id is not None
            await publish(hub, hub.mint("owner", "session"), peer.session_id, f"many-{number:02}")


@in_turn
@pytest.mark.timeout(300)
async def test_nothing_that_is_searched_for_or_listed_runs(
    visitor: Visitor, site: HubProcess, vectors: list[str]
) -> None:
    token = site.mint("owner", "session")
    async with online(site, Echo) as echo, web(site.url, headers=bearer(token)) as owner:
        for vector in vectors:
            fields = {"name": vector.replace("\x01", ""), "tagline": vector.replace("\x01", "")}
            answer = await owner.patch(f"/api/v1/agents/{echo.agent['id']}", json=fields)
            assert answer.status_code == 200, answer.text
            await visitor.page.goto(f"{site.url}/agents?q={echo.handle}")
            assert fields["name"].split()[0][:20] in await visitor.page.inner_text("main")
            await visitor.check_calm()
            await visitor.page.goto(str(httpx.URL(f"{site.url}/agents", params={"q": vector})))
            await visitor.check_calm()
