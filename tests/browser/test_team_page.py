"""The Team page in a browser: what changes changes by itself, and a deadline is counted down."""

import asyncio
import re

from playwright.async_api import expect

from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor
from tests.gateway.client import EchoSeat

pytestmark = IN_BROWSER
MAKE = "from tests.browser.team_rows import make_team; make_team('captain')"


async def test_an_owner_sees_an_agent_come_and_go_and_time_run_out(visitor: Visitor, site: HubProcess) -> None:
    page = visitor.page
    site.mint("captain", "session")
    made = await asyncio.to_thread(manage, site.home.env, "shell", "--no-imports", "-c", MAKE)
    await visitor.sign_in("captain")
    await visitor.stop_clock()
    await visitor.open("/desk/team")
    row = page.get_by_role("row", name="newcomer")
    await expect(row).to_have_count(0)
    async with EchoSeat(site.url, site.mint("captain", "channel"), agentId="newcomer") as seat:
        await seat.find("auth-response")
        await visitor.see_later(row.locator(".state"), "online")
    await visitor.see_later(row.locator(".state"), "offline")
    left = page.locator("[data-until]")
    await expect(left).to_have_text(re.compile(r"^4\d min( \d+ s)? left$"))
    await page.clock.fast_forward(3_600_000)
    await expect(left).to_have_text("closes now")
    await visitor.check_calm()
    await visitor.open(f"/desk/team/proposals/{made.split()[-1]}")
    await expect(page.get_by_text("has not voted yet")).to_be_visible()


async def test_an_owner_limits_the_peers_of_an_agent(visitor: Visitor, site: HubProcess) -> None:
    page = visitor.page
    async with EchoSeat(site.url, site.mint("keeper", "channel"), agentId="coder") as seat:
        await seat.find("auth-response")
    await visitor.sign_in("keeper", then="/desk/team")
    await page.get_by_role("link", name="coder").click()
    await page.get_by_label("May send to these agents only").check()
    await page.get_by_label("Sends to").fill("steward")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status").filter(has_text="coder is saved.")).to_be_visible()
    await page.get_by_role("link", name="coder").click()
    await expect(page.get_by_label("Sends to")).to_have_value("steward")
