"""What holds for every page, whoever looks at it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.chrome import IN_BROWSER
from tests.browser.pages import PAGES, Listed
from tests.browser.scene import Scene, playing
from tests.browser.visitor import Visitor, visiting
from tests.homes import MakeHome
from tests.hub_process import HubProcess, StartHub
from tests.peers import Echo, online

pytestmark = IN_BROWSER


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(make_home: MakeHome) -> AsyncIterator[Scene]:
    """A hub on which something is going on."""
    async with playing(make_home("embedded")) as running:
        yield running


@pytest.mark.parametrize("listed", PAGES, ids=lambda one: one.name)
async def test_a_page_is_small_calm_accessible_and_fits_a_phone(
    browser: Browser, scene: Scene, listed: Listed
) -> None:
    async with visiting(browser, scene.hub.url) as visitor:
        visitor.expected = [listed.complaint] if listed.complaint else []
        if listed.login:
            await visitor.sign_in(listed.login)
        await visitor.go(listed.path.format(**scene.names))
        await listed.act(visitor.page)
        await visitor.check()
        await visitor.check_keyboard()


async def test_the_colours_are_the_visitors_choice_and_stay(visitor: Visitor) -> None:
    await visitor.go("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await visitor.page.evaluate(ground)
    button = visitor.page.get_by_role("button", name="Colours")
    await button.click()
    await button.click()
    assert await button.get_attribute("aria-label") == "Colours: dark"
    dark = await visitor.page.evaluate(ground)
    assert dark != light
    await visitor.go("/signin")
    assert await visitor.page.evaluate(ground) == dark
    await button.click()
    assert await visitor.page.evaluate(ground) == light


async def test_the_skip_link_leads_past_the_navigation(visitor: Visitor) -> None:
    await visitor.go("/")
    await visitor.page.keyboard.press("Tab")
    await visitor.page.keyboard.press("Enter")
    assert await visitor.page.evaluate("document.activeElement.id") == "main"


async def test_a_hub_without_agents_says_what_to_do_next(
    browser: Browser, start_hub: StartHub, make_home: MakeHome
) -> None:
    hub = start_hub(make_home("embedded"), DEV_LOGIN=1)
    async with visiting(browser, hub.url) as visitor:
        for path in ("/", "/agents", "/demos/a2a/"):
            await visitor.go(path)
            assert await visitor.page.locator(".empty").get_by_role("link", name="Connect an agent").is_visible()
            await visitor.check()


async def test_without_scripts_the_pages_can_be_read(browser: Browser, site: HubProcess) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    async with online(site, Echo):
        await page.goto(f"{site.url}/demos/a2a/")
        assert await page.get_by_text("The reference below does not.").is_visible()
        assert await page.get_by_role("heading", name="Refusals").is_visible()
        assert not await page.get_by_role("button", name="Copy").first.is_visible()
    await context.close()
