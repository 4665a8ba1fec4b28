"""Webhooks in a browser: a test is seen to arrive. The forms are shown by `tests/webhooks/test_pages.py`."""

from playwright.async_api import expect

from lab.receivers import receiving
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_a_test_is_seen_to_arrive_and_sent_again(visitor: Visitor) -> None:
    page = visitor.page
    with receiving() as receiver:
        await visitor.sign_in("alice")
        await visitor.open("/webhooks")
        await visitor.check_calm()
        await page.get_by_label("URL").fill(receiver.url)
        await page.locator("input[value='chat.event']").check()
        await page.get_by_role("button", name="Subscribe").click()
        await page.get_by_text("Copy it now").wait_for()
        secret = await page.get_by_label("The signing secret", exact=True).input_value()
        assert secret.startswith("whsec_")
        await page.get_by_role("button", name="Copy the signing secret").click()
        assert await page.evaluate("navigator.clipboard.readText()") == secret
        await visitor.check_calm()
        await page.get_by_role("button", name="Send a test").click()
        await expect(page.locator("#deliveries tbody .badge")).to_have_text("delivered")
        assert secret not in await page.content()
        (one,) = receiver.heard(1)
        assert b"webhook.test" in one.body
        await visitor.check_calm()
        await page.get_by_role("button", name="again").click()
        await expect(page.get_by_text("will be sent again")).to_be_visible()
        receiver.heard(2)
        await expect(page.locator("#deliveries tbody .badge")).to_have_text("delivered")
        await visitor.check_calm()
