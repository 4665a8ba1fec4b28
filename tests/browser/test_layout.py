"""The layout with long values, with messages over a page, and in small windows."""

from functools import partial

from playwright.async_api import Route, expect

from tests.browser.chrome import IN_BROWSER
from tests.browser.scene import Scene
from tests.browser.visitor import DESKTOP, PHONE, Visitor

pytestmark = IN_BROWSER


COVERS = """([one, other]) => {
  const [a, b] = [one, other].map((each) => each.getBoundingClientRect());
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}"""
TOP_AND_BOTTOM = "(one) => [one.getBoundingClientRect().top, one.getBoundingClientRect().bottom]"


async def test_tiles_of_the_desk_have_room_for_long_durations(guest: Visitor, scene: Scene) -> None:
    """`test_every_page.py` looks at the widest window and at the smallest."""
    await guest.sign_in("owner", then="/desk")
    shown = guest.page.locator(f".agent[data-agent='{scene.names['slow']}'] dd").nth(4)
    await expect(shown).to_have_text("23 h 59 min")
    for width in (1024, 960, 768, 390):
        await guest.page.set_viewport_size({"width": width, "height": 900})
        await guest.check_overlaps()


async def test_a_hub_that_does_not_answer_is_shown_until_it_does(guest: Visitor, scene: Scene) -> None:
    page = guest.page
    await guest.sign_in("alice", then=f"/agents/{scene.names['agent']}")
    # Before the question: the page looks after the answer too, and an answered look takes the message away.
    await page.route("**/standing", lambda route: route.abort())
    await page.get_by_label("Your question").fill("hello")
    await page.get_by_label("Your question").press("Enter")
    await page.get_by_text("Answered in").wait_for()
    await page.evaluate("dispatchEvent(new Event('focus'))")
    line = page.get_by_role("alert").filter(has_text="The hub does not answer")
    await expect(line).to_be_visible()
    for window in (PHONE, DESKTOP):
        await page.set_viewport_size(window)
        await expect(page.locator("#question")).to_be_in_viewport()
        both = [await line.element_handle(), await page.locator(".composer").element_handle()]
        assert not await page.evaluate(COVERS, both)
        await guest.check_overlaps()
    await page.unroute("**/standing")
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await expect(line).to_be_hidden()


async def test_a_phone_shows_signing_out(guest: Visitor, scene: Scene) -> None:
    await guest.sign_in("a-login-of-some-length")
    await guest.page.set_viewport_size(PHONE)
    await guest.open("/agents")
    brand, button = guest.page.locator(".brand"), guest.page.get_by_role("button", name="Sign out")
    await expect(button).to_be_visible()
    (top, _), (_, bottom) = await button.evaluate(TOP_AND_BOTTOM), await brand.evaluate(TOP_AND_BOTTOM)
    assert top < bottom
    await expect(guest.page.get_by_role("link", name="Clawbridge", exact=True)).to_be_visible()
    await button.click()
    await guest.page.get_by_role("banner").get_by_role("link", name="Sign in").wait_for()


FAILURES = [
    ("desk.js", "missing.function();", "A script of this page failed: Uncaught ReferenceError"),
    ("desk.js", "Promise.reject(new Error('no'));", "A script of this page failed: Error: no"),
    ("desk_zone.js", "", "A script of this page failed: Uncaught SyntaxError"),
    ("desk_zone.js", None, "A script of this page did not load: "),
]


async def test_a_failing_script_is_shown(guest: Visitor) -> None:
    await guest.sign_in("alice")
    for script, answer, text in FAILURES:
        await guest.page.route(f"**/{script}", partial(serve, answer))
        await guest.page.goto(f"{guest.url}/desk")
        line = guest.page.get_by_role("alert").filter(has_text=text)
        await expect(line).to_be_visible()
        if text == FAILURES[0][2]:  # the others are the same element
            await guest.check_accessible()
            await guest.check_phone()
        await line.get_by_role("button", name="Close").click()
        await expect(line).to_be_hidden()
        await guest.page.unroute_all()


async def serve(answer: str | None, route: Route) -> None:
    """Give a script another text, or none."""
    await (route.abort() if answer is None else route.fulfill(body=answer, content_type="text/javascript"))
