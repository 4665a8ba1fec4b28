"""The page of an account for staff: on a desktop and on a phone, light and dark, with lists that are full."""

import asyncio

from lab.callers import bearer, web
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.looks import SMALL_TARGETS
from tests.browser.visitor import DESKTOP, Visitor

pytestmark = IN_BROWSER
PHONE = {"width": 390, "height": 844}
MANY = 60  # tokens, more than fit on a page of the list
MOST_CHARACTERS = 120_000


async def test_staff_end_what_an_account_has(visitor: Visitor, site: HubProcess) -> None:
    await asyncio.to_thread(site.mint, "chief", "session", admin=True)
    for _ in range(2):
        await asyncio.to_thread(site.mint_again, "dora", "session")
    token = await asyncio.to_thread(site.mint_again, "dora", "session")
    async with web(site.url, headers=bearer(token)) as program:
        for number in range(MANY):
            made = await program.post("/api/v1/tokens/channel", json={"name": f"laptop {number}"})
            assert made.status_code == 201
    await visitor.sign_in("chief")
    await visitor.open("/staff/accounts/dora")
    page = visitor.page
    assert len(await page.content()) < MOST_CHARACTERS
    for window in (PHONE, DESKTOP):
        await page.set_viewport_size(window)
        for colours in ("light", "dark"):
            await page.emulate_media(color_scheme=colours)
            await visitor.check_accessible()
        small = await page.evaluate(SMALL_TARGETS)
        assert not small, f"{window['width']}: {small}"
        await visitor.check_overlaps()
    await page.get_by_role("link", name="Next").click()
    await page.wait_for_url("**tokens=2*")  # otherwise the key may reach neither the old page nor the new one
    await page.get_by_role("button", name="End all sign-ins").press("Enter")
    await page.get_by_text("Signed in nowhere").wait_for()
    await page.get_by_role("button", name="Revoke all tokens").click()
    await page.get_by_role("heading", name="No tokens").wait_for()
    await page.get_by_role("button", name="Suspend").click()
    await page.get_by_role("button", name="Reinstate").wait_for()
    await visitor.check_calm()
