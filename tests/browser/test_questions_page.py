"""My questions in a browser: replies of tasks that are kept, by words and day, and the way to each task."""

from lab.agents import Echo, TaskPeer, online
from lab.callers import send
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.conversation import ask, last, said, text_in
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_what_was_asked_by_any_program_is_found_with_its_reply(visitor: Visitor, site: HubProcess) -> None:
    token = site.mint("collector", "session")
    async with online(site, Echo) as agent:
        await send(site.url, agent.handle, "What is a fiddlehead?", token)
        await send(site.url, agent.handle, "Is it edible?", token)
        await visitor.sign_in("collector", then="/")
        await visitor.page.get_by_role("link", name="My questions").click()
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


async def test_a_cancel_and_a_refusal_are_calm_and_a_preview_has_no_markup(
    visitor: Visitor, site: HubProcess
) -> None:
    async with online(site, TaskPeer) as agent:
        await visitor.sign_in("canceler", then=f"/agents/{agent.handle}")
        await ask(visitor, "say begun | wait")
        await last(visitor).get_by_text("begun", exact=True).wait_for()
        await visitor.page.get_by_role("button", name="Cancel").click()
        await said(visitor, "Canceled.")
        for steps, status in (
            ("wait", ""),
            ("reject I plan no wars", "Declined."),
            ("fail", "Failed."),
            ("reply # Plan\n\n- **one** [day](https://x.example)", "Answered"),
        ):
            await visitor.page.get_by_role("button", name="Start over").click()
            await ask(visitor, steps)
            if not status:
                await visitor.page.get_by_role("button", name="Cancel").click()
            await said(visitor, status or "Canceled.")
            if status == "Declined.":
                assert await text_in(visitor, "failure") == "I plan no wars"
                assert await visitor.page.locator("[data-part=failure].calm").is_visible()
        await visitor.open("/questions")
        await visitor.page.get_by_text("Plan one day", exact=True).wait_for()
        rows = [
            [
                await row.locator(".badge").get_attribute("class"),
                *await row.locator("span:has(> .badge), .reply:not(:empty)").all_inner_texts(),
            ]
            for row in await visitor.page.locator("[data-question]").all()
        ]
        assert rows == [
            ["badge good", "answered", "Plan one day"],
            ["badge bad", "failed The agent said that it failed."],
            ["badge", "declined The agent declined to answer.", "I plan no wars"],
            ["badge", "canceled You canceled this."],
            ["badge", "canceled You canceled this.", "begun"],
        ]
        await visitor.check_calm()
