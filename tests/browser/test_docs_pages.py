"""The documentation in a browser: found as one types, opened by the keyboard, and a call that is tried."""

from playwright.async_api import expect

from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_a_place_is_found_as_one_types_and_opened_by_keyboard(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.open("/")
    await page.get_by_role("link", name="Docs", exact=True).click()
    await page.wait_for_url("**/docs")
    await page.keyboard.press("/")
    await expect(page.get_by_label("Search guides")).to_be_focused()
    await page.keyboard.type("roll-secret")
    found = page.get_by_role("link", name="POST /api/v1/webhooks/{webhook_id}/roll-secret")
    await found.wait_for()
    assert "?q=roll-secret" in page.url
    await found.press("Enter")
    await page.wait_for_url("**/docs/api/webhooks#*")
    await expect(page.locator("section.call:target h2")).to_have_text(
        "POST /api/v1/webhooks/{webhook_id}/roll-secret"
    )
    await page.locator("section.call:target").get_by_role("button", name="Copy the code").click()
    await page.get_by_text("Copied.").wait_for()
    await visitor.check_calm()


async def test_a_call_is_tried_as_who_is_signed_in_or_by_a_token(visitor: Visitor, site: HubProcess) -> None:
    page = visitor.page
    await visitor.sign_in("alice", then="/docs/api/blocks#deleteOneBlock")
    await page.locator("#deleteOneBlock").get_by_text("Try it").click()
    form = page.get_by_role("form", name="Try DELETE /api/v1/blocks/{login}")
    await form.get_by_label("login").fill("some/one")
    await form.get_by_label("carry it out").check()
    await form.get_by_role("button").click()
    await expect(form.get_by_role("status")).to_contain_text("404")
    await page.locator("#getBlocks").get_by_text("Try it").click()
    listed = page.get_by_role("form", name="Try GET /api/v1/blocks")
    await page.get_by_label("Token for these forms").fill("unknown")
    visitor.expected = ["status of 401", "status of 404"]
    await listed.get_by_role("button").click()
    await expect(listed.get_by_role("status")).to_contain_text("401")
    await page.get_by_label("Token for these forms").fill(site.mint("bob", "session"))
    await listed.get_by_role("button").click()
    await expect(listed.get_by_role("status")).to_contain_text("200")
    await expect(listed.locator(".tried")).to_contain_text('"items"')
    await visitor.check_calm()
