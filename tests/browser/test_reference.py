"""The developer reference: pick an agent, exchange a task in each dialect, read what went wrong."""

import json

import pytest
from playwright.async_api import expect

from lab.agents import Chunker, Echo, TaskPeer, gone, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.reference import TASKS, TITLES, ask, speak, text_of, told
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER
PIECES = ["A lifetime ", "is how long ", "it's good."]
GET = {"own": "GetTask", "v1-0": "GetTask", "v0-3": "tasks/get"}
BUTTONS = {"v1-0": ("SubscribeToTask", "CancelTask"), "v0-3": ("tasks/resubscribe", "tasks/cancel")}
CODES = {
    "token": -32010,
    "agent": -32012,
    "type": -32005,
    "version": -32009,
    "json": -32700,
    "id": -32600,
    "method": -32601,
    "params": -32602,
    "task": -32001,
}
OF_DIALECT = ("method", "params", "task")  # mistakes whose requests differ between dialects
ARTIFACTS = "(all) => all.map((one) => [...one.children].map((part) => part.textContent).join(': '))"


@pytest.mark.parametrize("key", TITLES)
async def test_a_reply_is_shown_as_it_is_written(visitor: Visitor, site: HubProcess, key: str) -> None:
    style = {} if key == "own" else TASKS
    async with online(site, Chunker, pieces=PIECES, agent=style | {"tagline": "chunks"}) as agent:
        await visitor.sign_in("alice")
        await speak(visitor, key, agent.handle)
        for streaming in (False, True):
            await ask(visitor, "what's a lifetime?", streaming=streaming)
            await told(visitor, "Completed.")
            assert await text_of(visitor, "reply") == "".join(PIECES)
            steps = await text_of(visitor, "steps")
            whole = 1 if key == "v1-0" else 0  # docs/adr/0167
            assert steps.count("chunk") == (len(PIECES) + whole if streaming else 0)
            raw = await text_of(visitor, "raw")
            assert ("id: task-" in raw) == (streaming and key == "v1-0")
            assert ("A2A-Version: 1.0" in await text_of(visitor, "request")) == (key == "v1-0")
        assert steps.index("HTTP 200") < steps.index("WORKING") < steps.index("chunk") < steps.index("COMPLETED")
        await visitor.page.get_by_role("button", name=GET[key]).click()
        await told(visitor, "Completed.")
        state = json.loads(await text_of(visitor, "raw"))["result"]["status"]["state"]
        assert state == {"own": "COMPLETED", "v1-0": "TASK_STATE_COMPLETED", "v0-3": "completed"}[key]
        if key == "own":
            await see_the_card(visitor, agent.handle)
        await visitor.check_calm()


async def see_the_card(visitor: Visitor, handle: str) -> None:
    await visitor.page.get_by_role("button", name="Fetch the card").click()
    await visitor.page.locator("#card-answer", has_text=handle).wait_for()
    assert json.loads(await text_of(visitor, "card-answer"))["_clawborrator"]["handle"] == handle
    assert f"GET /api/a2a/v1/agents/{handle}/agent-card.json" in await text_of(visitor, "card-request")


async def test_each_mistake_is_answered_and_explained(visitor: Visitor, site: HubProcess) -> None:
    visitor.expected = ["status of 4"]
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice")
        for key in TITLES:
            await speak(visitor, key, agent.handle)
            for number, mistake in enumerate(CODES if key == "own" else OF_DIALECT):
                await visitor.page.get_by_label("Make a mistake").select_option(mistake)
                await ask(visitor, "hello", streaming=number % 2 == 0)
                await told(visitor, "Not taken.")
                assert (await text_of(visitor, "explained")).startswith(str(CODES[mistake])), (key, mistake)
                assert json.loads(await text_of(visitor, "raw"))["error"]["code"] == CODES[mistake]
        await visitor.check_calm()


async def test_refusals_and_failures_are_explained(visitor: Visitor, site: HubProcess) -> None:
    await visitor.sign_in("alice")
    async with online(site, Echo, agent={"dailyBudgetQueries": 0}) as spent:
        async with online(site, Echo) as left:
            pass
        await gone(site, left)
        for handle, reason in ((left.handle, "offline"), (spent.handle, "budget")):
            await visitor.open(f"/demos/a2a/?agent={handle}")
            await ask(visitor, "hello", streaming=False)
            await told(visitor, "Failed.")
            assert (await text_of(visitor, "explained")).startswith(reason)
            await visitor.check_calm()


async def test_without_a_sign_in_the_page_says_how(visitor: Visitor, site: HubProcess) -> None:
    visitor.expected = ["status of 401"]
    async with online(site, Echo) as agent:
        await visitor.open(f"/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "hello")
        await told(visitor, "Not taken.")
        assert (await text_of(visitor, "explained")).startswith("-32010")
        await visitor.page.locator("#try").get_by_role("link", name="Sign in").click()
        await visitor.page.get_by_label("Login").fill("alice")
        await visitor.page.get_by_role("button", name="Sign in").click()
        await visitor.page.wait_for_url(f"**/demos/a2a/?agent={agent.handle}")


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


async def test_a_plain_reply_that_is_no_task(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice")
        await speak(visitor, "v0-3", agent.handle)
        for streaming in (True, False):
            await ask(visitor, f"hello {streaming}", streaming=streaming)
            await visitor.page.get_by_text(f"echo: hello {streaming}", exact=True).first.wait_for()
            assert await visitor.page.get_by_role("button", name="tasks/get").is_disabled()
        await visitor.check_calm()


@pytest.mark.parametrize("key", BUTTONS)
async def test_a_task_asks_back_sends_artifacts_is_left_and_canceled(
    visitor: Visitor, site: HubProcess, key: str
) -> None:
    async with online(site, TaskPeer, agent=TASKS) as agent:
        await visitor.sign_in("alice")
        await speak(visitor, key, agent.handle)
        await answer_what_it_asks(visitor)
        await see_each_artifact_once(visitor)
        await leave_follow_and_cancel(visitor, agent, key)
        await visitor.check_calm()


async def answer_what_it_asks(visitor: Visitor) -> None:
    await ask(visitor, "note looking | ask which one?")
    await told(visitor, "The agent asks back.")
    assert await text_of(visitor, "reply") == "which one?"
    assert "looking" in await text_of(visitor, "steps")
    assert await visitor.page.get_by_label("This answers the task").is_checked()
    await ask(visitor, "the blue one")
    await told(visitor, "Completed.")
    assert await text_of(visitor, "reply") == "you said: the blue one"
    assert await visitor.page.get_by_label("This answers the task").is_disabled()


async def see_each_artifact_once(visitor: Visitor) -> None:
    shown = ["notes: one two", 'sum: {\n  "n": 3\n}\n', "page: page.txt, text/plain, 4 B\n"]
    for streaming in (True, False):
        steps = 'text notes one | more notes  two | data sum {"n": 3} | raw page abcd | say done'
        await ask(visitor, steps, streaming=streaming)
        await told(visitor, "Completed.")
        assert await visitor.page.locator("#artifacts li").evaluate_all(ARTIFACTS) == shown
        assert (await text_of(visitor, "steps")).count("artifact") == len(shown)
        assert await text_of(visitor, "reply") == "done"
    await ask(visitor, "text notes alone")
    await told(visitor, "Completed.")
    assert await text_of(visitor, "reply") == "No reply: the agent sent artifacts."
    assert await visitor.page.locator("#artifacts li").evaluate_all(ARTIFACTS) == ["notes: alone"]


async def leave_follow_and_cancel(visitor: Visitor, agent: TaskPeer, key: str) -> None:
    subscribe, cancel = BUTTONS[key]
    await ask(visitor, "say first | hold | say , then second")
    await visitor.page.get_by_text("first", exact=True).wait_for()
    await visitor.page.get_by_role("button", name="Stop reading").click()
    await told(visitor, "Stopped.")
    await visitor.page.get_by_role("button", name=subscribe).click()
    await visitor.page.locator("#steps", has_text="HTTP 200").wait_for()
    assert ("Last-Event-ID: task-" in await text_of(visitor, "request")) == (key == "v1-0")
    agent.release.set()
    await told(visitor, "Completed.")
    assert await text_of(visitor, "reply") == "first, then second"
    agent.release.clear()
    await visitor.page.get_by_label("the same without waiting").check()
    await visitor.page.get_by_label("Your question").fill("hold")
    await visitor.page.get_by_role("button", name="Send").click()
    await told(visitor, "The agent works on it")
    await visitor.page.get_by_role("button", name=cancel).click()
    await told(visitor, "Canceled.")
    assert (await text_of(visitor, "explained")).startswith("canceled")
    agent.release.set()
