"""The dialog that shares an answer, in a browser: with a group, and by a link that another visitor opens."""

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.sessions import api
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_an_answer_is_shared_with_a_group_and_by_a_link(visitor: Visitor, site: HubProcess) -> None:
    site.mint("sharer", "session")
    await api(site, "sharer", "POST", "/groups", {"slug": "sharers", "name": "Sharers"})
    async with online(site, Echo) as agent:
        await visitor.sign_in("sharer", then=f"/agents/{agent.handle}")
        page = visitor.page
        await page.get_by_label("Your question").fill("What is shared?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await page.get_by_role("button", name="Share", exact=True).click()
        dialog = page.get_by_role("dialog", name="Share this answer")
        await dialog.get_by_label("A group of yours").check()
        await dialog.get_by_label("Group", exact=True).select_option("sharers")
        await dialog.get_by_role("button", name="Share", exact=True).click()
        await dialog.get_by_text("Shared with @sharers.").wait_for()
        await dialog.get_by_label("Everyone who has a link").check()
        await dialog.get_by_label("Until").select_option("tomorrow")
        await dialog.get_by_role("button", name="Share", exact=True).click()
        await dialog.get_by_text("Copy it now").wait_for()
        link = await dialog.get_by_role("textbox", name="Address for everyone who has").input_value()
        await dialog.get_by_role("button", name="Close").click()
        await visitor.check_calm()
        await visitor.be("")
        await visitor.open(link.removeprefix(site.url))
        await page.get_by_text("echo: What is shared?").wait_for()
        await page.get_by_text("@sharer", exact=True).first.wait_for()
        await visitor.check()
