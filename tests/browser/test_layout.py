"""The layout with long values, with messages over a page, and in small windows."""

import asyncio

import pytest
from playwright.async_api import Locator, expect

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import DESKTOP, Visitor

pytestmark = IN_BROWSER
SMALL_PHONE = {"width": 360, "height": 740}
PHONE = {"width": 390, "height": 844}
SLOWEST_MS = (23 * 3600 + 59 * 60) * 1000
ANSWER_SLOWLY = """
from agents.models import Agent
from tests.native.rows import make_turn
agent = Agent.objects.get(pk={pk})
Agent.objects.filter(pk=agent.pk).update(daily_budget=99999)
make_turn(agent, agent.owner, latency_ms={ms})
"""


async def box_of(shown: Locator) -> dict[str, float]:
    box = await shown.bounding_box()
    assert box is not None
    return dict(box)


async def covers(one: Locator, other: Locator) -> bool:
    """Whether two elements share a part of the window."""
    a, b = await box_of(one), await box_of(other)
    return (
        a["x"] < b["x"] + b["width"]
        and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"]
        and b["y"] < a["y"] + a["height"]
    )


async def test_tiles_of_the_desk_have_room_for_long_durations(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo, owner="owner-of-tiles") as agent:
        code = ANSWER_SLOWLY.format(pk=agent.agent["id"], ms=SLOWEST_MS)
        await asyncio.to_thread(manage, site.home.env, "shell", "--no-imports", "-c", code)
        await visitor.sign_in("owner-of-tiles")
        for width in (1280, 1024, 960, 768, 390):
            await visitor.page.set_viewport_size({"width": width, "height": 900})
            await visitor.open("/desk")
            shown = visitor.page.locator(f".agent[data-agent='{agent.agent['id']}'] dd").nth(4)
            await expect(shown).to_have_text("23 h 59 min")
            await visitor.check_overlaps()


@pytest.mark.parametrize("window", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_a_hub_that_does_not_answer_leaves_the_question_box_free(
    visitor: Visitor, site: HubProcess, window: dict[str, int]
) -> None:
    page = visitor.page
    async with online(site, Echo) as agent:
        await page.set_viewport_size(window)
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await page.get_by_label("Your question").fill("hello")
        await page.get_by_label("Your question").press("Enter")
        await page.get_by_text("Answered in").wait_for()
        await page.route("**/standing", lambda route: route.abort())
        await page.evaluate("dispatchEvent(new Event('focus'))")
        line = page.get_by_role("alert").filter(has_text="The hub does not answer")
        await expect(line).to_be_visible()
        await expect(page.locator("#question")).to_be_in_viewport()
        assert not await covers(line, page.locator(".composer"))
        await visitor.check_overlaps()


async def test_a_phone_shows_signing_out(visitor: Visitor, site: HubProcess) -> None:
    await visitor.sign_in("a-login-of-some-length")
    await visitor.page.set_viewport_size(SMALL_PHONE)
    await visitor.open("/agents")
    brand, button = visitor.page.locator(".brand"), visitor.page.get_by_role("button", name="Sign out")
    await expect(button).to_be_visible()
    assert (await box_of(button))["y"] < (await box_of(brand))["y"] + (await box_of(brand))["height"]
    await expect(visitor.page.get_by_role("link", name="Clawbridge", exact=True)).to_be_visible()
    await button.click()
    await visitor.page.get_by_role("banner").get_by_role("link", name="Sign in").wait_for()
