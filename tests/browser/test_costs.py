"""What agents cost, as their owner limits and sees it."""

import re

from playwright.async_api import expect

from lab.agents import Echo, online
from lab.callers import failed_text, reply_text, send
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_an_owner_limits_the_cost_of_a_day_and_sees_who_reached_it(
    visitor: Visitor, site: HubProcess
) -> None:
    page = visitor.page
    async with online(site, Echo, usage={"costUsd": 0.3}) as agent:
        await visitor.sign_in("owner", then=f"/desk/agents/{agent.agent['id']}")
        await page.locator("#limits summary").click()
        await page.get_by_label("Cost of a day in US dollars").fill("0.50")
        await visitor.check_calm()
        await page.get_by_role("button", name="Save", exact=True).click()
        await page.wait_for_url(re.compile(r"/desk$"))
        for text in ("one", "two"):
            reply_text(await send(site.url, agent.handle, text, site.mint("alice", "session")))
        refused = await send(site.url, agent.handle, "three", site.mint("alice", "session"))
        assert "reached its cost limit of today" in failed_text(refused)
        await page.get_by_role("link", name="Costs").click()
        limit = page.locator("li").filter(has_text=f"@{agent.handle}")
        await expect(limit).to_contain_text("$0.60 of $0.50 today, limit reached")
        await expect(page.get_by_role("row", name=f"@{agent.handle}")).to_contain_text("$0.60")
        await visitor.check_calm()
