"""The page of a user in the admin: staff rights are given and taken with a tick, and the history says so."""

from playwright.async_api import expect

from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_staff_rights_are_given_and_taken_with_a_tick(visitor: Visitor, site: HubProcess) -> None:
    site.mint("chief", "session", admin=True)
    site.mint("deputy", "session")
    await visitor.sign_in("chief")
    page = visitor.page
    await page.goto(f"{site.url}/admin/accounts/user/?q=deputy")
    await page.get_by_role("link", name="deputy").click()
    await expect(page.get_by_role("region", name="Sessions")).to_contain_text("minted by a test")
    await page.get_by_label("Staff").check()
    await page.get_by_role("button", name="Save and continue editing").click()
    await expect(page.get_by_label("Staff")).to_be_checked()
    await page.get_by_label("Staff").uncheck()
    await page.get_by_role("button", name="Save and continue editing").click()
    await page.get_by_role("link", name="History").click()
    for done in ("gave staff rights", "took staff rights away"):
        await expect(page.get_by_role("cell", name=done)).to_be_visible()
