"""Parts of pages that change by themselves, or with the visitor's time zone."""

import asyncio
import re

from playwright.async_api import Browser, Page, expect

from lab.agents import Echo, Held, online
from lab.callers import send
from tests.browser.chrome import IN_BROWSER
from tests.browser.scene import Scene
from tests.browser.visitor import Visitor, visiting
from tests.gateway.client import EchoSeat

pytestmark = IN_BROWSER
ZONE = "Pacific/Kiritimati"
IS_LOCAL = """(form) => {
  const format = new Intl.DateTimeFormat("en-GB", {...form, timeZone: "Etc/GMT-14"});
  const is_local = (time) => time.textContent === format.format(new Date(time.dateTime));
  return [...document.querySelectorAll(".asks time, .transcript time")].map(
    (time) => is_local(time) && time.title.endsWith("UTC"));
}"""


async def test_a_page_shows_by_itself_what_changes(guest: Visitor, scene: Scene) -> None:
    await guest.stop_clock()
    await see_an_agent_busy_and_gone(guest, scene)
    await see_a_seat_come_and_a_deadline_pass(guest, scene)
    await see_a_booking_confirmed(guest)


async def see_an_agent_busy_and_gone(guest: Visitor, scene: Scene) -> None:
    """On the desk of its owner, and on the page that staff see of the hub."""
    hub = scene.hub
    async with online(hub, Held, owner="newcomer-of-the-desk") as held:
        await guest.sign_in("newcomer-of-the-desk", then="/desk")
        agent = guest.page.locator("li.agent", has_text=held.handle)
        state, left = agent.locator(".state"), agent.locator("[data-left]")
        await expect(state).to_have_text("online")
        at_first = int(await left.inner_text())
        async with asyncio.TaskGroup() as group:
            group.create_task(send(hub.url, held.handle, "wait", hub.mint("asker", "session")))
            await guest.see_later(state, "busy")
            await expect(left).to_have_text(str(at_first - 1))
            held.release.set()
        await guest.see_later(state, "online")
    await guest.see_later(state, "offline")
    await guest.check_calm()
    await guest.sign_in("chief", then="/health")
    agents = guest.page.locator("dd").first
    before = int(await agents.inner_text())
    async with online(hub, Echo):
        await guest.see_later(agents, str(before + 1))
    await guest.see_later(agents, str(before))
    await guest.check_calm()


async def see_a_seat_come_and_a_deadline_pass(guest: Visitor, scene: Scene) -> None:
    """On the page of a team."""
    await guest.sign_in("captain", then="/desk/team")
    row = guest.page.get_by_role("row", name="late-comer")
    await expect(row).to_have_count(0)
    async with EchoSeat(scene.hub.url, scene.hub.mint("captain", "channel"), agentId="late-comer") as seat:
        await seat.find("auth-response")
        await guest.see_later(row.locator(".state"), "online")
    await guest.see_later(row.locator(".state"), "offline")
    left = guest.page.locator("[data-until]")
    await expect(left).to_have_text(re.compile(r"^4\d min( \d+ s)? left$"))
    await guest.page.clock.fast_forward(3_600_000)
    await expect(left).to_have_text("closes now")
    await guest.check_calm()


async def see_a_booking_confirmed(guest: Visitor) -> None:
    """In another tab, by the owner of a network, who stays in the list of those that wait."""
    await guest.sign_in("host", then="/desk/network")
    figure = guest.page.locator(".figures dd").nth(3)
    waiting = int(await figure.inner_text())
    other: Page = await guest.page.context.new_page()
    await other.goto(f"{guest.url}/desk/network")
    await other.get_by_role("link", name="All that wait").click()
    await other.get_by_role("button", name="Confirm: ").first.click()
    await expect(other.get_by_role("heading", name=f"{waiting - 1} bookings")).to_be_visible()
    await expect(other.get_by_label("Status")).to_have_value("pending")
    await guest.see_later(figure, str(waiting - 1))
    await guest.check_calm()


async def test_days_and_times_are_the_visitors(browser: Browser, scene: Scene) -> None:
    async with visiting(browser, scene.hub.url, timezone_id=ZONE) as away:
        page = away.page
        await away.sign_in("owner", then=f"/desk/agents/{scene.names['id']}/audit")
        await expect(page.get_by_text(f"Days are those of {ZONE}")).to_be_visible()
        await expect(page.get_by_text(f"Times are in {ZONE}")).to_be_visible()
        assert set(await page.evaluate(IS_LOCAL, {"dateStyle": "medium", "timeStyle": "medium"})) == {True}
        await away.check_calm()
        await away.open(f"/desk/sessions/{scene.names['session']}")
        await expect(page.locator(".state", has_text="live")).to_be_visible()
        await send(scene.hub.url, scene.names["agent"], "and now?", scene.hub.mint("asker", "session"))
        await expect(page.get_by_text("and now?", exact=True)).to_be_visible()  # a script added it
        assert set(await page.evaluate(IS_LOCAL, {"timeStyle": "medium"})) == {True}
        zone = page.get_by_role("main").get_by_text(f"Times are in {ZONE}")
        await expect(zone).to_be_visible()  # this page has no foot
        await away.sign_in("host", then="/desk/network/log")
        newest = page.locator("tbody th time").first
        day = await newest.evaluate("(one) => new Date(one.dateTime).toLocaleDateString('sv-SE')")
        await page.get_by_label("Day").fill(day)
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_text(f"Days are those of {ZONE}.")).to_be_visible()
        assert "tz=Pacific%2FKiritimati" in page.url
        assert await newest.get_attribute("datetime")
