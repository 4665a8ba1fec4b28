"""The hub's health in a browser: what changes changes, and nothing else moves."""

from playwright.async_api import expect

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_staff_see_an_agent_come(visitor: Visitor, site: HubProcess) -> None:
    site.mint("chief", "session", admin=True)
    await visitor.sign_in("chief")
    await visitor.stop_clock()
    await visitor.open("/health")
    agents = visitor.page.locator("dd").first
    before = int(await agents.inner_text())
    await visitor.check_calm()
    async with online(site, Echo):
        await visitor.see_later(agents, str(before + 1))
        await visitor.check_calm()
    await visitor.see_later(agents, str(before))
    await visitor.check_calm()


async def test_no_other_user_finds_it(visitor: Visitor) -> None:
    visitor.expected = ["404"]
    await visitor.sign_in("alice")
    await visitor.open("/health")
    await expect(visitor.page.get_by_role("heading", name="Not found")).to_be_visible()
