"""Rules for every page and every visitor."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from lab.agents import Echo
from tests.browser.chrome import IN_BROWSER
from tests.browser.pages import PAGES, Listed
from tests.browser.scene import Scene
from tests.browser.visitor import Visitor, visiting

pytestmark = IN_BROWSER


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def walker(browser: Browser, scene: Scene) -> AsyncIterator[Visitor]:
    """A visitor who sees one page after another, each as another user."""
    async with visiting(browser, scene.hub.url) as visitor:
        yield visitor


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.deep] if one.like else [])
        for one in sorted(PAGES, key=lambda one: one.login)
    ],
)
async def test_a_page_is_small_calm_accessible_and_fits_a_phone(
    walker: Visitor, scene: Scene, listed: Listed
) -> None:
    await walker.be(scene.hub.mint(listed.login, "session") if listed.login else "")
    walker.complaints.clear()
    walker.expected = [listed.complaint] if listed.complaint else []
    await walker.open(listed.path.format(**scene.names))
    await walker.check_calm()
    await listed.act(walker.page)
    await walker.check()
    await walker.check_keyboard()


async def test_a_page_like_another_is_checked_where_the_other_is() -> None:
    checked = {one.name for one in PAGES if not one.like}
    assert {one.like for one in PAGES if one.like} <= checked


async def test_a_faint_text_is_found_on_every_page(guest: Visitor) -> None:
    """Also when kinds of text that other pages have, too, are not looked at again."""
    for path in ("/signin", "/docs"):
        await guest.open(path)
        await guest.check_colours()
        await guest.page.evaluate("document.querySelector('main p, main label').style.color = '#ccc'")
        with pytest.raises(AssertionError, match="color-contrast"):
            await guest.check_colours()


async def test_tab_walks_again_over_what_a_page_replaced_meanwhile(guest: Visitor) -> None:
    await guest.open("/signin")
    await guest.page.evaluate("""() => addEventListener("focusin", () => {
      const last = [...document.querySelectorAll("button")].at(-1);
      last.replaceWith(last.cloneNode(true));
    }, {once: true})""")
    await guest.check_keyboard()


async def test_a_page_that_is_parsed_slowly_is_not_painted_in_part(guest: Visitor) -> None:
    """Tables of the page change the widths of their columns with every row."""
    guest.is_profile_spent = True  # the rate may be that of the process
    await guest.network.send("Emulation.setCPUThrottlingRate", {"rate": 8})
    await guest.open("/docs/rest")
    await guest.check_weight()
    await guest.check_calm()


async def test_the_colours_are_the_visitors_choice_and_stay(guest: Visitor) -> None:
    await guest.open("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await guest.page.evaluate(ground)
    button = guest.page.get_by_role("button", name="Colours")
    await button.click()
    await button.click()
    assert await button.get_attribute("aria-label") == "Colours: dark"
    dark = await guest.page.evaluate(ground)
    assert dark != light
    await guest.open("/signin")
    assert await guest.page.evaluate(ground) == dark
    await button.click()
    assert await guest.page.evaluate(ground) == light


async def test_the_skip_link_leads_past_the_navigation(guest: Visitor) -> None:
    await guest.open("/")
    await guest.page.keyboard.press("Tab")
    await guest.page.keyboard.press("Enter")
    assert await guest.page.evaluate("document.activeElement.id") == "main"


async def test_without_scripts_a_page_can_be_read_and_an_agent_is_found(browser: Browser, scene: Scene) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page, handle = await context.new_page(), scene.names["agent"]
    await page.goto(f"{scene.hub.url}/demos/a2a/?agent={scene.names['all']}")
    await expect(page.get_by_text("The reference below does not.")).to_be_visible()
    await expect(page.get_by_role("heading", name="Refusals")).to_be_visible()
    await expect(page.get_by_role("button", name="Copy").first).to_be_hidden()
    await page.get_by_label("Find an agent").fill(handle)
    await page.get_by_label("Find an agent").press("Enter")
    await page.get_by_text("1 agent.", exact=True).wait_for()
    await expect(page.locator("#about-handle")).to_have_text(f"@{scene.names['all']}")
    await page.get_by_role("link", name=f"@{handle}").click()
    await expect(page.locator("#about-handle")).to_have_text(f"@{handle}")
    await context.close()


async def test_without_scripts_an_agent_is_published_and_a_webhook_made(browser: Browser, scene: Scene) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page, url = await context.new_page(), scene.hub.url
    await page.goto(f"{url}/signin?next=/desk/connect")
    await page.get_by_label("Login").fill("unscripted")
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("Its name").fill("quiet")
    await page.get_by_role("button", name="Get a token").click()
    token = await page.get_by_label("The new token", exact=True).input_value()
    async with Echo(url, token, routingName="quiet"):
        await page.get_by_role("link", name="Check again").click()
        await page.get_by_role("link", name="Publish @quiet").click()
        await page.get_by_role("button", name="Publish").click()
        await expect(page.get_by_text("@unscripted/quiet is there")).to_be_visible()
    for path in ("/desk", "/demos/agnt/"):
        await page.goto(url + path)
        await expect(page.locator(".scripted:visible")).to_have_count(0)
    await page.goto(f"{url}/webhooks")
    await page.get_by_label("URL").fill("http://127.0.0.1:9/hook")
    await page.get_by_role("button", name="Subscribe").click()
    await expect(page.get_by_text("Choose at least one event.")).to_be_visible()
    await page.locator("input[value='agent.replied']").check()
    await page.get_by_role("button", name="Subscribe").click()
    await page.get_by_role("button", name="Send a test").click()
    await expect(page.locator("#deliveries")).to_contain_text("webhook.test")
    await context.close()
