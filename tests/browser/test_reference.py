"""The developer reference: pick an agent, fetch its card, exchange a task, read what went wrong."""

import json

from playwright.async_api import Browser, expect

from lab.agents import Chunker, Echo, Held, Stall, gone, online
from lab.callers import bearer, web
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.reference import CODES, PIECES, ask, text_of
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_a_reply_is_shown_as_it_is_written(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Chunker, pieces=PIECES) as agent:
        await visitor.sign_in("alice")
        await visitor.open(f"/demos/a2a/?agent={agent.handle}")
        await expect(visitor.page.locator("#about-handle")).to_have_text(f"@{agent.handle}")
        await ask(visitor, "what's a lifetime?")
        await visitor.page.get_by_text("Completed.").wait_for()
        assert await text_of(visitor, "reply") == "".join(PIECES)
        steps = await text_of(visitor, "steps")
        assert steps.index("HTTP 200") < steps.index("WORKING") < steps.index("chunk") < steps.index("COMPLETED")
        assert steps.count("chunk") == len(PIECES)
        raw = await text_of(visitor, "raw")
        assert raw.count("data: ") == len(PIECES) + 2
        await visitor.page.get_by_role("button", name="GetTask").click()
        await visitor.page.get_by_text("Completed.").wait_for()
        assert json.loads(await text_of(visitor, "raw"))["result"]["status"]["state"] == "COMPLETED"
        await visitor.check_calm()


async def test_what_arrives_is_there_before_the_end(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Held) as agent:
        await visitor.sign_in("alice")
        await visitor.open(f"/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "hello")
        prompt = await agent.heard("prompt")
        await agent.chunk(prompt["chatId"], "first piece")
        await visitor.page.get_by_text("first piece", exact=True).wait_for()
        assert "COMPLETED" not in await text_of(visitor, "steps")
        await visitor.page.get_by_role("button", name="Stop reading").click()
        await visitor.page.get_by_text("Stopped.", exact=True).wait_for()
        agent.release.set()
        await visitor.check_calm()


async def test_the_card_is_fetched_and_shown(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo, agent={"tagline": "echoes"}) as agent:
        await visitor.open(f"/demos/a2a/?agent={agent.handle}")
        await visitor.page.get_by_role("button", name="Fetch the card").click()
        await visitor.page.get_by_text("HTTP 200", exact=True).wait_for()
        card = json.loads(await text_of(visitor, "card-answer"))
        assert card["_clawborrator"]["handle"] == agent.handle
        assert f"GET /api/a2a/v1/agents/{agent.handle}/agent-card.json" in await text_of(visitor, "card-request")
        await visitor.check_calm()


async def test_each_mistake_is_answered_and_explained(visitor: Visitor, site: HubProcess) -> None:
    visitor.expected = ["status of 4"]
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice")
        await visitor.open(f"/demos/a2a/?agent={agent.handle}")
        for mistake, code in CODES.items():
            await visitor.page.get_by_label("Make a mistake").select_option(mistake)
            await visitor.page.evaluate("document.getElementById('ask-status').textContent = ''")
            await ask(visitor, "hello")
            await visitor.page.get_by_text("Not taken.").wait_for()
            assert (await text_of(visitor, "explained")).startswith(str(code)), mistake
            assert json.loads(await text_of(visitor, "raw"))["error"]["code"] == code
        await visitor.check_calm()


async def test_refusals_and_failures_are_explained(visitor: Visitor, short_wait_site: HubProcess) -> None:
    site = short_wait_site
    visitor.url = site.url
    await visitor.sign_in("alice")
    async with online(site, Stall) as silent, online(site, Echo, agent={"dailyBudgetQueries": 0}) as spent:
        async with online(site, Echo) as left:
            pass
        await gone(site, left)
        for handle, reason in ((left.handle, "offline"), (spent.handle, "budget"), (silent.handle, "timeout")):
            await visitor.open(f"/demos/a2a/?agent={handle}")
            await ask(visitor, "hello", streaming=False)
            await visitor.page.get_by_text("Failed.", exact=True).wait_for()
            assert (await text_of(visitor, "explained")).startswith(reason)
            await visitor.check_calm()


async def test_without_a_sign_in_the_page_says_how(visitor: Visitor, site: HubProcess) -> None:
    visitor.expected = ["status of 401"]
    async with online(site, Echo) as agent:
        await visitor.open(f"/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "hello")
        await visitor.page.get_by_text("Not taken.").wait_for()
        assert (await text_of(visitor, "explained")).startswith("-32010")
        await visitor.page.locator("#try").get_by_role("link", name="Sign in").click()
        await visitor.page.get_by_label("Login").fill("alice")
        await visitor.page.get_by_role("button", name="Sign in").click()
        await visitor.page.wait_for_url(f"**/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "hello")
        await visitor.page.get_by_text("echo: hello").first.wait_for()


async def test_an_agent_is_found_and_picked_by_keyboard(visitor: Visitor, site: HubProcess) -> None:
    page = visitor.page
    async with online(site, Echo) as first, online(site, Echo) as second:
        await visitor.sign_in("alice")
        await visitor.open(f"/demos/a2a/?agent={first.handle}")
        await page.get_by_label("Your question").fill("kept")
        await page.get_by_label("Find an agent").fill(second.handle)
        await expect(page.locator("#found-count")).to_have_text("1 agent.")
        await expect(page.locator("#about-handle")).to_have_text(f"@{first.handle}")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name=f"@{second.handle}")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#about-handle")).to_have_text(f"@{second.handle}")
        await expect(page.locator("#found [aria-current]")).to_have_text(f"@{second.handle}")
        assert f"agent={second.handle}" in page.url
        assert await page.get_by_label("Your question").input_value() == "kept"
        await page.get_by_role("button", name="Send").click()
        await page.get_by_text("echo: kept").first.wait_for()
        await page.get_by_label("Find an agent").fill("unknown")
        await page.get_by_label("Find an agent").press("Enter")
        await expect(page.locator("#found-count")).to_have_text("No agent matches.")
        await visitor.check_calm()


async def test_an_agent_is_found_and_picked_without_scripts(browser: Browser, site: HubProcess) -> None:
    async with online(site, Echo) as first, online(site, Echo) as second:
        context = await browser.new_context(java_script_enabled=False)
        page = await context.new_page()
        await page.goto(f"{site.url}/demos/a2a/?agent={first.handle}")
        await page.get_by_label("Find an agent").fill(second.handle)
        await page.get_by_label("Find an agent").press("Enter")
        await page.get_by_text("1 agent.", exact=True).wait_for()
        await expect(page.locator("#about-handle")).to_have_text(f"@{first.handle}")
        await page.get_by_role("link", name=f"@{second.handle}").click()
        await expect(page.locator("#about-handle")).to_have_text(f"@{second.handle}")
        await context.close()


async def test_an_agent_closed_to_a_visitor_is_not_shown_to_them(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as open_one:
        await visitor.open(f"/demos/a2a/?agent=owner/unknown&q={open_one.handle}")
        await expect(visitor.page.locator("#found a")).to_have_text([f"@{open_one.handle}"])
        await expect(visitor.page.locator("#about-handle")).not_to_have_text("@owner/unknown")


async def test_the_same_as_text(site: HubProcess) -> None:
    async with web(site.url) as client:
        answer = await client.get("/llms.txt", headers=bearer("unknown"))
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "&" not in answer.text.replace("&&", "")
    assert f"POST {site.url}/api/a2a/v1/agents/OWNER/SLUG" in answer.text
