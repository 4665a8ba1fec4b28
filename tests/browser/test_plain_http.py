"""A hub in a local network, by a host name over plain http: pages there are no secure context."""

from lab.agents import Echo, online
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.browser.chrome import IN_BROWSER, chromium
from tests.browser.reference import ask
from tests.browser.visitor import visiting

pytestmark = IN_BROWSER

URL = "http://hub.lan"


async def test_every_way_to_ask_works_and_a_failing_script_is_shown(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), PUBLIC_URL=URL, TEST_TIME_SCALE=1)
    address = hub.url.removeprefix("http://")
    async with (
        online(hub, Echo) as agent,
        chromium(f"--host-resolver-rules=MAP hub.lan {address}") as browser,
        visiting(browser, URL) as visitor,
    ):
        visitor.expected.append("Cross-Origin-Opener-Policy header has been ignored")
        await visitor.page.context.add_cookies(
            [{"name": "cw_session", "value": hub.mint("alice", "session"), "url": URL}]
        )
        await visitor.go(f"/agents/{agent.handle}")
        assert await visitor.page.evaluate("[isSecureContext, 'randomUUID' in crypto]") == [False, False]
        await visitor.page.get_by_label("Your question").fill("hello")
        await visitor.page.get_by_role("button", name="Ask", exact=True).click()
        await visitor.page.get_by_text("echo: hello").wait_for()
        await visitor.check_calm()
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "again")
        await visitor.page.get_by_text("Completed.").wait_for()
        await visitor.check_calm()
        await visitor.page.evaluate("setTimeout(() => missing.function(), 0)")
        await visitor.page.get_by_text("A script of this page failed").wait_for()
    assert len(agent.prompts) == 2
