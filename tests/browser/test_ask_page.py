"""The page of one ask in a browser: from a failed answer to its page, a report, and asking again."""

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_a_failed_ask_is_looked_at_reported_and_asked_again(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, TaskPeer) as agent:
        await visitor.sign_in("reporter", then=f"/agents/{agent.handle}")
        page = visitor.page
        await page.get_by_label("Your question").fill("fail no luck today")
        await page.keyboard.press("Enter")
        await page.get_by_role("link", name="What happened").click()
        await page.get_by_role("heading", name="Timeline").wait_for()
        assert await page.get_by_role("row").filter(has_text="The agent said that it failed.").count() == 1
        await page.get_by_label("What was wrong?").fill("It should have known")
        await page.get_by_role("button", name="Report a problem").click()
        await page.get_by_text("You reported").wait_for()
        await visitor.check_calm()
        await page.get_by_role("link", name="Ask again").click()
        await page.get_by_label("Your question").wait_for()
        assert await page.get_by_label("Your question").input_value() == "fail no luck today"
