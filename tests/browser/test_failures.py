"""What a page shows when one of its scripts fails."""

from functools import partial

from playwright.async_api import Route, expect

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


FAILURES = [
    ("desk.js", "missing.function();", "A script of this page failed: Uncaught ReferenceError"),
    ("desk.js", "Promise.reject(new Error('no'));", "A script of this page failed: Error: no"),
    ("desk_zone.js", "", "A script of this page failed: Uncaught SyntaxError"),
    ("desk_zone.js", None, "A script of this page did not load: "),
]


async def test_a_failing_script_is_shown(visitor: Visitor) -> None:
    await visitor.sign_in("alice")
    for script, answer, text in FAILURES:
        await visitor.page.route(f"**/{script}", partial(serve, answer))
        await visitor.page.goto(f"{visitor.url}/desk")
        line = visitor.page.get_by_role("alert").filter(has_text=text)
        await expect(line).to_be_visible()
        if text == FAILURES[0][2]:  # the others are the same element
            await visitor.check_accessible()
            await visitor.check_phone()
        await line.get_by_role("button", name="Close").click()
        await expect(line).to_be_hidden()
        await visitor.page.unroute_all()


async def serve(answer: str | None, route: Route) -> None:
    """Give a script another text, or none."""
    await (route.abort() if answer is None else route.fulfill(body=answer, content_type="text/javascript"))


async def test_a_hub_that_does_not_answer_is_shown_until_it_does(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        line = visitor.page.get_by_role("alert").filter(has_text="The hub does not answer")
        await visitor.page.route("**/standing", lambda route: route.abort())
        await visitor.page.evaluate("dispatchEvent(new Event('focus'))")
        await expect(line).to_be_visible()
        await visitor.page.unroute("**/standing")
        await visitor.page.evaluate("dispatchEvent(new Event('focus'))")
        await expect(line).to_be_hidden()
