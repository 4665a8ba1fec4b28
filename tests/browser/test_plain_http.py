"""A hub in a local network, by a host name over plain http: pages there are no secure context."""

from lab.agents import Echo, online
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.browser.chrome import IN_BROWSER, chromium
from tests.browser.reference import ask, text_of
from tests.browser.visitor import visiting

pytestmark = IN_BROWSER

URL = "http://hub.lan"


async def test_asking_and_copying_work_without_a_secure_context(
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
        missing = "[isSecureContext, 'randomUUID' in crypto, 'clipboard' in navigator]"
        assert await visitor.page.evaluate(missing) == [False, False, False]
        await visitor.page.get_by_label("Your question").fill("hello")
        await visitor.page.get_by_role("button", name="Ask", exact=True).click()
        await visitor.page.get_by_text("Answered in").wait_for()
        await visitor.page.get_by_role("button", name="Copy the answer").click()
        await visitor.page.get_by_text("Copied.").wait_for()
        await visitor.page.get_by_label("Your question").fill("")
        await visitor.page.get_by_label("Your question").press("Control+V")
        assert await visitor.page.get_by_label("Your question").input_value() == "echo: hello"
        await visitor.check_calm()
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "again")
        await visitor.page.get_by_text("Completed.").wait_for()
        await visitor.page.get_by_role("button", name="Copy: What is sent").click()
        await visitor.page.get_by_text("Copied.").wait_for()
        sent = await text_of(visitor, "request")
        await visitor.page.get_by_label("Your question").press("Control+V")
        assert await visitor.page.get_by_label("Your question").input_value() == f"again{sent}"
        await visitor.check_calm()
    assert len(agent.prompts) == 2
