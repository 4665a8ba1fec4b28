"""The scripts of the owner's desk. The forms and lists of the desk are shown by `tests/native/test_desk*.py`."""

import re

from playwright.async_api import expect

from lab.agents import Echo, online, publish
from lab.callers import send
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_the_wizard_says_when_its_token_was_revoked(visitor: Visitor, site: HubProcess) -> None:
    visitor.expected = ["404"]
    page = visitor.page
    await visitor.sign_in("newcomer", then="/desk/connect")
    await page.get_by_label("Its name").fill("short-lived")
    await page.get_by_role("button", name="Get a token").click()
    token = await page.get_by_label("The new token", exact=True).input_value()
    assert re.fullmatch("ck_live_[0-9a-f]{32}", token)
    other = await page.context.new_page()
    await other.goto(f"{site.url}/account")
    await other.get_by_role("button", name="Revoke short-lived").click()
    await expect(page.get_by_text("This token was revoked.")).to_be_visible()


async def test_chosen_agents_are_unpublished_by_keyboard(visitor: Visitor, site: HubProcess) -> None:
    page, token = visitor.page, site.mint("chooser", "session")
    async with Echo(site.url, site.mint("chooser", "channel"), routingName="one") as agent:
        assert agent.session_id is not None
        await publish(site, token, agent.session_id, "one")
        await visitor.sign_in("chooser", then="/desk")
        button = page.get_by_role("button", name="Unpublish…")
        await expect(button).to_be_disabled()
        await page.get_by_label("Choose @chooser/one").focus()
        await page.keyboard.press("Space")
        await expect(page.get_by_text("1 chosen")).to_be_visible()
        await expect(page.get_by_label("All on this page")).to_be_checked()
        await button.press("Enter")
        await expect(page.get_by_role("heading", name="Unpublish 1 agent?")).to_be_visible()
        await visitor.check_calm()
        await page.get_by_role("button", name="Unpublish 1 agent").press("Enter")
        await expect(page.get_by_role("heading", name="1 agent unpublished")).to_be_visible()
        await visitor.check()
        await page.get_by_role("link", name="Back to the desk").click()
        await expect(page.locator("li.agent").get_by_text("draft", exact=True)).to_be_visible()


async def test_logins_are_asked_for_while_access_is_limited(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await visitor.sign_in("owner", then=f"/desk/agents/{echo.agent['id']}")
        await expect(visitor.page.get_by_role("button", name="Save")).to_be_in_viewport()
        field = visitor.page.get_by_label("Allowed logins")
        await expect(field).to_be_hidden()
        await visitor.page.get_by_label("Limited").check()
        await expect(field).to_be_visible()
        await visitor.check_calm()


async def test_the_audit_shows_the_values_of_a_day_and_leads_to_the_transcript(
    visitor: Visitor, site: HubProcess
) -> None:
    page = visitor.page
    async with online(site, Echo) as echo:
        await send(site.url, echo.handle, "what is a lifetime?", site.mint("asker", "session"))
        await visitor.sign_in("owner", then=f"/desk/agents/{echo.agent['id']}/audit?days=30")
        today = page.locator(".chart").first.locator("g").last
        await expect(today.locator(".values")).to_be_hidden()
        await today.locator(".bar").hover()
        await expect(today.locator(".values")).to_contain_text(": 1 answered")
        await expect(today.locator(".values")).to_be_visible()
        await page.get_by_role("link", name="In the transcript").click()
        await expect(page).to_have_url(re.compile(r"/desk/sessions/[^?]+\?turn=(\d+)#turn-\1$"))
        await expect(page.get_by_text("echo: what is a lifetime?")).to_be_visible()
        await visitor.check_calm()
