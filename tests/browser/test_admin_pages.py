"""The admin, which Django lays out: targets, contrast and labels, in both colours, on a desktop and on a phone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from lab.agents import Echo, online
from lab.callers import send
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.looks import SMALL_TARGETS
from tests.browser.visitor import DESKTOP, Visitor

pytestmark = IN_BROWSER
PHONE = {"width": 390, "height": 844}
SORTED = "agents/agent/?o=1.-2"
LISTS = ["", "accounts/user/", "admin/logentry/", SORTED, "agents/agent/add/"]
# Of the same template.
MORE_LISTS = ["accounts/credential/", "agents/agent/", "agents/turn/", "webhooks/delivery/"]


@pytest_asyncio.fixture(loop_scope="session")
async def agent(site: HubProcess) -> AsyncIterator[str]:
    """An agent that was asked; yields the path of its page in the admin."""
    async with online(site, Echo) as echo:
        await send(site.url, echo.handle, "hello", site.mint("alice", "session"))
        yield f"agents/agent/{echo.agent['id']}/change/"


@pytest_asyncio.fixture(loop_scope="session")
async def staff(visitor: Visitor, site: HubProcess) -> Visitor:
    await asyncio.to_thread(site.mint, "chief", "session", admin=True)
    await visitor.sign_in("chief")
    return visitor


async def check(staff: Visitor, path: str) -> None:
    await staff.open(f"/admin/{path}")
    # Before axe, which loads some style sheets of the admin in a way that the policy forbids.
    assert ((await staff.seen())["blocked"], staff.complaints) == ([], [])
    await staff.check_accessible()
    for window in (PHONE, DESKTOP):
        await staff.page.set_viewport_size(window)
        small = await staff.page.evaluate(SMALL_TARGETS)
        assert not small, f"{staff.page.url} at {window['width']}: {small}"
        await staff.check_overlaps()


async def choose_colours(page: Page, theme: str, system: Literal["light", "dark"]) -> None:
    """Choose a theme as the toggle of the admin does, in a system with other colours."""
    await page.evaluate("(theme) => localStorage.setItem('theme', theme)", theme)
    await page.emulate_media(color_scheme=system)


@pytest.mark.parametrize("paths", [LISTS, pytest.param(MORE_LISTS, marks=pytest.mark.deep)], ids=["few", "more"])
async def test_lists_have_targets_contrast_and_labels(staff: Visitor, agent: str, paths: list[str]) -> None:
    for path in paths:
        staff.complaints.clear()  # axe's own, of the page before
        await check(staff, path)


async def test_forms_have_targets_contrast_and_labels(staff: Visitor, agent: str) -> None:
    await check(staff, agent)
    staff.complaints.clear()
    await check(staff, agent.replace("change/", "history/"))
    await staff.open(f"/admin/{agent}")
    await staff.page.get_by_label("Name:").fill("")
    await staff.page.get_by_role("button", name="Save", exact=True).click()
    await staff.page.get_by_text("Please correct the error").wait_for()
    await staff.check_accessible()
    await staff.page.get_by_label("Name:").fill("Echo")
    await staff.page.get_by_role("button", name="Save", exact=True).click()
    await staff.page.get_by_text("was changed successfully").wait_for()
    await expect(staff.page.locator("label[for=searchbar]")).to_have_text("Search in agents")
    await expect(staff.page.locator("label[for=searchbar]")).to_be_visible()
    await staff.page.locator("#result_list input[name=_selected_action]").first.check()
    await staff.check_accessible()


async def test_chosen_colours_have_contrast_too(staff: Visitor, agent: str) -> None:
    chosen: list[tuple[str, Literal["light", "dark"]]] = [("dark", "light"), ("light", "dark")]
    for theme, system in chosen:
        await staff.open("/admin/")
        await choose_colours(staff.page, theme, system)
        for path in ("agents/agent/", agent):
            await staff.open(f"/admin/{path}")
            assert await staff.page.evaluate("getComputedStyle(document.body).colorScheme") == theme
            await staff.check_colours()
