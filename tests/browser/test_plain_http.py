"""A new hub in a local network, by a host name over plain http: pages there are no secure context."""

from playwright.async_api import Browser, expect

from lab.agents import Echo, online
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.browser.chrome import IN_BROWSER
from tests.browser.reference import ask, text_of, told
from tests.browser.visitor import Visitor, visiting

pytestmark = IN_BROWSER
MISSING = "[isSecureContext, 'randomUUID' in crypto, 'clipboard' in navigator]"


async def test_a_new_hub_says_how_to_begin_and_is_asked_without_a_secure_context(
    browser: Browser, make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), name="hub.lan", TEST_TIME_SCALE=1)
    async with visiting(browser, hub.url.replace("127.0.0.1", "hub.lan")) as visitor:
        visitor.expected = ["Cross-Origin-Opener-Policy header has been ignored"]
        for path in ("/", "/demos/a2a/", "/agents"):
            await visitor.open(path)
            link = visitor.page.locator(".empty").get_by_role("link", name="Connect an agent")
            await expect(link).to_be_visible()
            await visitor.check()
        async with online(hub, Echo) as agent:
            await visitor.be(hub.mint("alice", "session"))
            await ask_and_copy(visitor, agent.handle)
    assert len(agent.prompts) == 2


async def ask_and_copy(visitor: Visitor, handle: str) -> None:
    """On the agent's page, and on the developer reference."""
    page, question = visitor.page, visitor.page.get_by_label("Your question")
    await visitor.open(f"/agents/{handle}")
    assert await page.evaluate(MISSING) == [False, False, False]
    await question.fill("hello")
    await page.get_by_role("button", name="Ask", exact=True).click()
    await page.get_by_text("Answered in").wait_for()
    await page.get_by_role("button", name="Copy the answer").click()
    await page.get_by_text("Copied.").wait_for()
    await question.fill("")
    await question.press("Control+V")
    assert await question.input_value() == "echo: hello"
    await visitor.check_calm()
    await visitor.open(f"/demos/a2a/?agent={handle}")
    await ask(visitor, "again")
    await told(visitor, "Completed.")
    await page.get_by_role("button", name="Copy: What is sent").click()
    await page.get_by_text("Copied.").wait_for()
    sent = await text_of(visitor, "request")
    await question.press("Control+V")
    assert await question.input_value() == f"again{sent}"
    await visitor.check_calm()
