"""The command palette in a browser: by keys alone, by its button on a phone, and for screen readers."""

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import PHONE, Visitor

pytestmark = IN_BROWSER


async def test_an_agent_is_opened_without_a_mouse(visitor: Visitor, site: HubProcess) -> None:
    fields = {"name": "Zebra keeper", "tagline": "Knows zebras"}
    async with online(site, Echo, agent=fields) as agent:
        await visitor.sign_in("finder", then="/agents")
        page = visitor.page
        await page.keyboard.press("Control+k")
        field = page.get_by_role("combobox", name="Find agents, threads, pages and documents")
        await field.wait_for()
        await page.get_by_role("option", name="My questions").wait_for()
        assert await field.evaluate("(one) => one === document.activeElement")
        await field.fill("zebra")
        option = page.get_by_role("option", name="Zebra keeper")
        await option.wait_for()
        assert await option.get_attribute("aria-selected") == "true"
        assert await field.get_attribute("aria-activedescendant") == await option.get_attribute("id")
        assert await page.get_by_role("status").filter(has_text="result").count() == 1
        await visitor.check_accessible()
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/agents/{agent.handle}")
        await visitor.check_calm()


async def test_arrows_choose_and_escape_gives_the_focus_back(visitor: Visitor, site: HubProcess) -> None:
    await visitor.sign_in("finder", then="/questions")
    page = visitor.page
    await page.locator("#q").focus()
    await page.keyboard.press("Control+k")
    await page.get_by_role("option", name="My questions").wait_for()
    first = await chosen(visitor)
    await page.keyboard.press("ArrowDown")
    assert await chosen(visitor) != first
    await page.keyboard.press("ArrowUp")
    assert await chosen(visitor) == first
    await page.keyboard.press("ArrowUp")
    last = await chosen(visitor)
    await page.keyboard.press("PageDown")
    assert await chosen(visitor) == last
    await page.keyboard.press("Escape")
    assert await page.evaluate("document.activeElement.id") == "q"
    await page.keyboard.press("Control+k")
    await page.keyboard.type("no-such-thing")
    await page.get_by_text("Nothing has the words").wait_for()
    await page.keyboard.press("Enter")
    assert await page.locator("dialog.palette").is_visible()


async def test_a_button_opens_it_on_a_phone(visitor: Visitor, site: HubProcess) -> None:
    await visitor.page.set_viewport_size(PHONE)
    await visitor.open("/")
    page = visitor.page
    await page.get_by_role("button", name="Find", exact=True).click()
    await page.get_by_role("option", name="Docs", exact=True).wait_for()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.get_by_role("option", name="Docs", exact=True).click()
    await page.wait_for_url("**/docs")


async def chosen(visitor: Visitor) -> str:
    """The line that is chosen."""
    return await visitor.page.locator("[role=option][aria-selected=true]").inner_text()
