"""A set of saved questions in the browser: made, run, and its results shown without loading the page again."""

from playwright.async_api import Browser, expect

from lab.agents import Held, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import visiting

pytestmark = IN_BROWSER


async def test_an_owner_makes_a_set_and_watches_its_run(browser: Browser, embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Held, owner="watcher") as agent, visiting(browser, embedded_hub.url) as owner:
        page = owner.page
        await owner.be(embedded_hub.mint("watcher", "session"))
        await owner.open("/desk/evaluations")
        await page.get_by_label("Agent").fill(agent.handle)
        await page.get_by_label("Name").fill("Greetings")
        await page.get_by_role("button", name="Make the set").click()
        await page.get_by_label("Question", exact=True).fill("hi")
        await page.get_by_label("Expectation").fill("echo: hi")
        await page.get_by_role("button", name="Save", exact=True).click()
        await page.get_by_role("button", name="Run now").click()
        await expect(page.get_by_role("status").filter(has_text="Asking")).to_contain_text("0 of 1 questions")
        await expect(page.get_by_role("cell", name="waiting")).to_be_visible()
        agent.release.set()
        await expect(page.get_by_role("cell", name="passed")).to_be_visible(timeout=20_000)
        await expect(page.get_by_role("button", name="Run now")).to_be_visible()
        await page.get_by_role("cell", name="passed").get_by_role("link").click()
        await expect(page.get_by_role("main")).to_contain_text("echo: hi")
