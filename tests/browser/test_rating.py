"""Thumbs for answers in a browser: in the conversation, after a reload, and on the page of the ask."""

from playwright.async_api import expect

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_a_thumb_and_its_note_are_there_after_a_reload(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as agent:
        await visitor.sign_in("rater", then=f"/agents/{agent.handle}")
        page = visitor.page
        good, bad = (page.get_by_role("button", name=f"{kind} answer") for kind in ("Good", "Bad"))
        note = page.get_by_label("Note for the agent’s owner")
        await page.get_by_label("Your question").fill("Is it good?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await bad.click()
        await note.fill("It only repeats.")
        await page.keyboard.press("Enter")
        await page.get_by_text("Your note is sent.").wait_for()
        await page.reload()
        await expect(bad).to_have_attribute("aria-pressed", "true")
        await expect(note).to_have_value("It only repeats.")
        await visitor.check_calm()
        await page.get_by_role("link", name="What happened").click()
        await expect(note).to_have_value("It only repeats.")
        await good.click()
        await expect(note).to_have_value("")  # the note was about the other thumb
        await page.get_by_text("Thank you").wait_for()
        await page.reload()
        await expect(good).to_have_attribute("aria-pressed", "true")
        colours = [await one.evaluate("(it) => getComputedStyle(it).backgroundColor") for one in (good, bad)]
        assert colours[0] != colours[1]
        await visitor.check_calm()
