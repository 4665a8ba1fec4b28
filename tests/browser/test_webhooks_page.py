"""Webhooks from a browser: subscribe, see a test arrive, send it again, with scripts and without."""

import re
from urllib.parse import quote

import httpx
import pytest
from playwright.async_api import Browser, expect

from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess
from lab.receivers import Receiver, receiving
from tests.browser.chrome import IN_BROWSER
from tests.browser.vectors import in_turn
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def subscribe(visitor: Visitor, receiver: Receiver, *events: str) -> None:
    await visitor.page.get_by_label("URL").fill(receiver.url)
    for name in events:
        await visitor.page.locator(f"input[value='{name}']").check()
    await visitor.page.get_by_role("button", name="Subscribe").click()
    await visitor.page.get_by_text("Copy it now").wait_for()


async def test_a_test_is_seen_to_arrive_and_sent_again(visitor: Visitor) -> None:
    page = visitor.page
    with receiving() as receiver:
        await visitor.sign_in("alice")
        await visitor.open("/webhooks")
        await visitor.check_calm()
        await subscribe(visitor, receiver, "chat.event", "agent.replied")
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
        await page.get_by_role("button", name="New signing secret").click()
        await expect(page.get_by_text("signs too, until")).to_be_visible()
        assert await page.get_by_label("The signing secret", exact=True).input_value() != secret
        await page.get_by_role("button", name="Delete this webhook").click()
        await expect(page.get_by_text("No webhooks yet")).to_be_visible()
        await visitor.check_calm()


async def test_a_webhook_is_paused_changed_and_filtered_and_a_delivery_is_read(visitor: Visitor) -> None:
    page = visitor.page
    with receiving(lambda _: 503) as receiver:
        receiver.answer_body = b"the disk is <b>full</b>"
        await visitor.sign_in("erin")
        await visitor.open("/webhooks")
        await subscribe(visitor, receiver, "chat.event")
        await page.get_by_role("button", name="Send a test").click()
        await expect(page.locator("#deliveries tbody tr")).to_contain_text("HTTP 503")
        await page.get_by_label("Status", exact=True).select_option("delivered")
        await page.get_by_role("button", name="Show").click()
        await page.get_by_role("link", name="Show all").click()
        await page.locator("#deliveries tbody a").click()
        await expect(page.locator("#response")).to_have_text("the disk is <b>full</b>")
        await expect(page.locator("#payload")).to_contain_text('"type": "webhook.test"')
        await visitor.check_calm()
        receiver.answer = lambda _: 204
        await page.get_by_role("button", name="Send again").click()
        await expect(page.locator("#deliveries .badge")).to_have_text("delivered")
        await page.get_by_role("link", name="Webhook", exact=False).last.click()
        await page.get_by_text("URL, events and sessions").click()
        await page.locator("input[value='agent.replied']").check()
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".facts").first).to_contain_text("agent.replied")
        await page.get_by_role("button", name="Pause").click()
        await expect(page.get_by_text("Paused since")).to_be_visible()
        await visitor.check_calm()
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("button", name="Send a test")).to_be_visible()


async def test_a_failure_says_when_it_is_tried_again(visitor: Visitor) -> None:
    with receiving(lambda _: 500) as receiver:
        await visitor.sign_in("bob")
        await visitor.open("/webhooks")
        await subscribe(visitor, receiver, "*")
        await visitor.page.get_by_role("button", name="Send a test").click()
        row = visitor.page.locator("#deliveries tbody tr")
        await expect(row).to_contain_text("HTTP 500")
        await expect(row).to_contain_text("pending")
        await expect(visitor.page.get_by_text("1 failure in a row")).to_be_visible()
        await row.get_by_role("button").focus()
        receiver.answer = lambda _: 204
        await visitor.check_calm()


async def test_it_works_without_scripts(browser: Browser, site: HubProcess) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    with receiving() as receiver:
        await page.goto(f"{site.url}/signin?next=/webhooks")
        await page.get_by_label("Login").fill("carol")
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_label("URL").fill("no address")
        await page.get_by_role("button", name="Subscribe").click()
        await expect(page.get_by_label("URL")).to_have_css("border-top-color", "rgb(179, 38, 30)")
        await page.get_by_label("URL").fill(receiver.url)
        await page.get_by_role("button", name="Subscribe").click()
        await expect(page.get_by_text("Choose at least one event.")).to_be_visible()
        await page.locator("input[value='*']").check()
        await page.get_by_role("button", name="Subscribe").click()
        await page.get_by_role("button", name="Send a test").click()
        receiver.heard(1)
        await page.reload()
        await expect(page.locator("#deliveries tbody .badge")).to_have_text(re.compile("delivered|sending"))
    await context.close()


@in_turn
@pytest.mark.timeout(300)
async def test_nothing_a_subscriber_or_receiver_says_runs(
    visitor: Visitor, site: HubProcess, vectors: list[str]
) -> None:
    visitor.expected = ["400"]
    await visitor.sign_in("dave")
    page = visitor.page
    async with web(site.url, headers=bearer(site.mint("dave", "session"))) as client:
        for vector in vectors:
            made = await add(client, vector)
            await page.goto(f"{site.url}/webhooks/{made['id']}", wait_until="domcontentloaded")
            await visitor.check_calm()
            await page.goto(f"{site.url}/webhooks", wait_until="domcontentloaded")
            await page.get_by_label("URL").fill(vector)
            await page.get_by_label("Of sessions of this name only").fill(vector[:81])
            await page.get_by_label("Of this session only").fill(vector[:36])
            await page.get_by_role("button", name="Subscribe").click()
            await page.get_by_role("alert").first.wait_for()
            await visitor.check_calm()
            assert (await client.delete(f"/api/v1/webhooks/{made['id']}")).status_code == 204


async def add(client: httpx.AsyncClient, vector: str) -> Json:
    """A webhook whose every word is the owner's."""
    names = [word[:64] for word in vector.replace("\x01", "").split()]
    body = {"url": f"http://127.0.0.1:9/{quote(vector)}", "events": names}
    body |= {"filters": {"routingName": vector.replace("\x01", "")[:80]}}
    answer = await client.post("/api/v1/webhooks", json=body)
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()
    return made
