"""A visitor finds nothing of the visitor of the test before, whose profile of the browser they have."""

from contextlib import suppress

from playwright.async_api import BrowserContext, expect

from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.profiles import Profile
from tests.browser.visitor import PHONE, Visitor

pytestmark = IN_BROWSER

LEAVE = """async () => {
  document.cookie = "left=1";
  localStorage.left = sessionStorage.left = window.name = "left";
  history.replaceState({left: 1}, "");
  await caches.open("left");
  await new Promise((done, fail) => {
    const opening = indexedDB.open("left", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("left");
    opening.onsuccess = done;
    opening.onerror = fail;
  });
  const folder = await navigator.storage.getDirectory();
  await folder.getFileHandle("left", {create: true});
}"""
# What pages and tests left, each empty or false in a new profile; and the state of the tab.
LEFT = """async () => {
  const files = [];
  for await (const name of (await navigator.storage.getDirectory()).keys()) files.push(name);
  return {
    cookie: document.cookie.includes("left"),
    local: localStorage.length,
    session: sessionStorage.length,
    name: window.name,
    history: history.state !== null,
    caches: (await caches.keys()).length,
    databases: (await indexedDB.databases()).length,
    files: files.length,
    permission: (await navigator.permissions.query({name: "geolocation"})).state === "granted",
    colours: matchMedia("(prefers-color-scheme: dark)").matches,
    width: innerWidth !== 1280,
    script: "left" in window,
  };
}"""
IS_NOW = "Math.abs(Date.now() - performance.timeOrigin) < 600_000"


async def leave_everything(visitor: Visitor) -> BrowserContext:
    """Sign in, and leave something in each place that a page or a test can write to; the context."""
    page, context = visitor.page, visitor.page.context
    await visitor.sign_in("alice", then="/account")
    await page.evaluate(LEAVE)
    await context.grant_permissions(["geolocation", "clipboard-read"], origin=visitor.url)
    await context.route("**/signin", lambda route: route.abort())
    await page.route("**/signin", lambda route: route.abort())
    await page.add_init_script("window.left = 1")
    await page.set_viewport_size(PHONE)
    await page.emulate_media(color_scheme="dark")
    further = await context.new_page()
    await further.goto(f"{visitor.url}/account")
    visitor.complaints.append("left")
    left = await page.evaluate(LEFT)
    assert {name for name, is_left in left.items() if not is_left} == {"script"}  # runs in the next document
    return context


async def find_nothing(visitor: Visitor) -> None:
    assert await visitor.page.context.cookies() == []
    await visitor.open("/signin")
    left = await visitor.page.evaluate(LEFT)
    assert {name: is_left for name, is_left in left.items() if is_left} == {}
    assert await visitor.page.evaluate(IS_NOW)
    await expect(visitor.page.get_by_role("banner").get_by_role("link", name="Sign in")).to_be_visible()
    assert visitor.complaints == []


async def test_the_next_visitor_gets_an_empty_profile_also_after_a_test_that_failed(
    profile: Profile, site: HubProcess
) -> None:
    with suppress(AssertionError):
        async with profile.visiting(site.url) as first:
            left = await leave_everything(first)
            raise AssertionError
    async with profile.visiting(site.url) as second:
        assert second.page.context is left
        assert len(left.pages) == 2  # that of the visitor, and the empty one that keeps the process
        await find_nothing(second)


async def test_a_profile_with_a_clock_of_a_test_is_not_used_again(profile: Profile, site: HubProcess) -> None:
    async with profile.visiting(site.url) as first:
        left = first.page.context
        await first.stop_clock()
        await first.open("/signin")
        await first.page.clock.fast_forward(3_600_000)
    async with profile.visiting(site.url) as second:
        assert second.page.context is not left
        await find_nothing(second)
