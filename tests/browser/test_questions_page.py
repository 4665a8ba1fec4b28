"""My questions in a browser: replies of tasks that are kept, by words and day, and the way to each task."""

from playwright.async_api import expect

from lab.agents import Echo, TaskPeer, online
from lab.callers import send
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_what_was_asked_by_any_program_is_found_with_its_reply(visitor: Visitor, site: HubProcess) -> None:
    token = site.mint("collector", "session")
    async with online(site, Echo) as agent:
        await send(site.url, agent.handle, "What is a fiddlehead?", token)
        await send(site.url, agent.handle, "Is it edible?", token)
        await visitor.sign_in("collector", then="/")
        await visitor.page.get_by_role("link", name="My questions").click()
        await visitor.page.get_by_role("link", name="Every question").click()
        await visitor.page.get_by_text("echo: What is a fiddlehead?").wait_for()
        assert await visitor.page.locator("[data-question]").count() == 2
        await visitor.page.get_by_label("Words of the question").fill("FIDDLEHEAD")
        await visitor.page.get_by_label("Agent").fill(f"@{agent.handle}")
        await visitor.page.get_by_label("State").select_option("answered")
        await visitor.page.get_by_label("Day").fill(await visitor.page.evaluate(TODAY))
        await visitor.page.keyboard.press("Enter")
        await visitor.page.get_by_role("link", name="Clear the search").wait_for()
        assert await visitor.page.locator("[data-question]").count() == 1
        await visitor.page.get_by_text("echo: What is a fiddlehead?").wait_for()
        await visitor.check_calm()
        await visitor.page.get_by_role("link", name="Open the conversation").click()
        await visitor.page.wait_for_url("**?task=task-*")


TODAY = "new Intl.DateTimeFormat('en-CA').format(new Date())"


async def test_a_reply_stands_in_one_line_and_a_reason_once(visitor: Visitor, site: HubProcess) -> None:
    token = site.mint("canceler", "session")
    async with online(site, TaskPeer) as agent:
        for steps in ("reject I plan no wars", "fail", "reply # Plan\n\n- **one** [day](https://x.example)"):
            await send(site.url, agent.handle, steps, token)
        await visitor.sign_in("canceler", then="/questions/all")
        await visitor.page.get_by_text("Plan one day", exact=True).wait_for()
        rows = [
            await row.locator("span:has(> .badge), .reply:not(:empty)").all_inner_texts()
            for row in await visitor.page.locator("[data-question]").all()
        ]
        assert rows == [
            ["answered", "Plan one day"],
            ["failed The agent said that it failed."],
            ["declined The agent declined to answer.", "I plan no wars"],
        ]
        await visitor.check_calm()


async def test_a_thread_is_continued_shared_and_leads_to_each_ask(visitor: Visitor, site: HubProcess) -> None:
    token = site.mint("continuer", "session")
    async with online(site, Echo) as agent:
        await send(site.url, agent.handle, "What is a **thread**?", token)
        await visitor.sign_in("continuer", then="/questions")
        page = visitor.page
        await page.get_by_role("link", name="What is a **thread**?").click()
        await expect(page.locator("article.kept .answer strong")).to_have_text("thread")
        await page.get_by_label("Your question").fill("And after days?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await page.get_by_text("echo: And after days?").wait_for()
        await visitor.check_calm()
        await page.reload()
        assert await page.locator("article.kept").count() == 2  # the answer belongs to the same thread
        await page.get_by_text("Rename, archive, share, export, delete").click()
        await page.get_by_role("button", name="Share this thread").click()
        dialog = page.get_by_role("dialog", name="Share this thread")
        await dialog.get_by_label("Everyone who is signed in").check()
        await dialog.get_by_role("button", name="Share", exact=True).click()
        await dialog.get_by_text("Shared with").wait_for()
        await visitor.check_calm()
        await dialog.get_by_role("button", name="Close").click()
        await page.get_by_role("link", name="What happened").first.click()
        await page.wait_for_url("**/questions/*")
        await page.get_by_role("heading", name="Request and response").wait_for()
        await page.get_by_role("link", name="Its thread").click()
        await page.wait_for_url("**/questions/threads/*")
