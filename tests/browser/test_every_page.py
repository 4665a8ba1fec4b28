"""What holds for every page and every visitor."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.browser.chrome import IN_BROWSER
from tests.browser.pages import PAGES, Listed
from tests.browser.scene import Scene, playing
from tests.browser.visitor import Visitor, visiting

pytestmark = IN_BROWSER


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(make_storage: MakeStorage) -> AsyncIterator[Scene]:
    """A hub on which something is going on."""
    async with playing(make_storage("embedded")) as running:
        yield running


SignedIn = Callable[[str], Awaitable[Visitor]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def signed_in(browser: Browser, scene: Scene) -> AsyncIterator[SignedIn]:
    """Gives the visitor of a login, with the browser it had for the page before."""
    visitors: dict[str, Visitor] = {}
    async with AsyncExitStack() as stack:

        async def of(login: str) -> Visitor:
            if login not in visitors:
                visitors[login] = await stack.enter_async_context(visiting(browser, scene.hub.url))
                if login:
                    await visitors[login].sign_in(login)
            return visitors[login]

        yield of


@pytest.mark.parametrize(
    "listed",
    [pytest.param(one, id=one.name, marks=[pytest.mark.deep] if one.like else []) for one in PAGES],
)
async def test_a_page_is_small_calm_accessible_and_fits_a_phone(
    signed_in: SignedIn, scene: Scene, listed: Listed
) -> None:
    visitor = await signed_in(listed.login)
    visitor.complaints.clear()
    visitor.expected = [listed.complaint] if listed.complaint else []
    await visitor.go(listed.path.format(**scene.names))
    await visitor.check_calm()
    await listed.act(visitor.page)
    await visitor.check()
    await visitor.check_keyboard()


async def test_a_page_like_another_is_checked_where_the_other_is() -> None:
    checked = {one.name for one in PAGES if not one.like}
    assert {one.like for one in PAGES if one.like} <= checked


async def test_tab_walks_again_over_what_a_page_replaced_meanwhile(visitor: Visitor) -> None:
    await visitor.open("/signin")
    await visitor.page.evaluate("""() => addEventListener("focusin", () => {
      const last = [...document.querySelectorAll("button")].at(-1);
      last.replaceWith(last.cloneNode(true));
    }, {once: true})""")
    await visitor.check_keyboard()


async def test_a_page_that_is_parsed_slowly_is_not_painted_in_part(visitor: Visitor) -> None:
    """Its tables change the widths of their columns with every row."""
    visitor.is_profile_spent = True  # the rate may be that of the process
    await visitor.network.send("Emulation.setCPUThrottlingRate", {"rate": 8})
    await visitor.go("/docs/rest")
    await visitor.check_calm()


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


async def test_without_scripts_the_pages_can_be_read(browser: Browser, site: HubProcess) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    async with online(site, Echo):
        await page.goto(f"{site.url}/demos/a2a/")
        assert await page.get_by_text("The reference below does not.").is_visible()
        assert await page.get_by_role("heading", name="Refusals").is_visible()
        assert not await page.get_by_role("button", name="Copy").first.is_visible()
    await context.close()
