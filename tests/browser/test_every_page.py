"""What holds for every page, whoever looks at it."""

import pytest

from tests.browser.chrome import IN_BROWSER
from tests.browser.pages import PAGES, Listed
from tests.browser.visitor import Visitor
from tests.hub_process import HubProcess
from tests.peers import Echo, online

pytestmark = IN_BROWSER


@pytest.mark.parametrize("listed", PAGES, ids=lambda one: one.name)
async def test_a_page_is_small_calm_accessible_and_fits_a_phone(
    visitor: Visitor, site: HubProcess, listed: Listed
) -> None:
    visitor.expected = ["404"] if listed.name in ("not-found", "agent-absent") else []
    async with online(
        site, Echo, agent={"tagline": "says what you say", "description": "# Echo\n\nIt *echoes*."}
    ) as echo:
        if listed.signed_in:
            await visitor.sign_in("alice")
        await visitor.go(listed.path.format(agent=echo.handle))
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
