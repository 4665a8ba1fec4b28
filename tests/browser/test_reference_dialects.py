"""The developer reference in the dialects beside the hub's own."""

import json

import pytest

from lab.agents import Chunker, Echo, TaskPeer, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.reference import CODES, PIECES, TASKS, TITLES, ask, speak, text_of
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


@pytest.mark.parametrize("key", TITLES)
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_question_in_another_dialect(
    visitor: Visitor, site: HubProcess, key: str, streaming: bool
) -> None:
    async with online(site, Chunker, pieces=PIECES, agent=TASKS) as agent:
        await visitor.sign_in("alice")
        await speak(visitor, key, agent.handle)
        await ask(visitor, "what's a lifetime?", streaming=streaming)
        await visitor.page.get_by_text("Completed.").wait_for()
        assert await text_of(visitor, "reply") == "".join(PIECES)
        steps = await text_of(visitor, "steps")
        whole = 1 if key == "v1-0" else 0  # docs/adr/0167
        assert steps.count("chunk") == (len(PIECES) + whole if streaming else 0)
        assert "COMPLETED" in steps
        raw = await text_of(visitor, "raw")
        assert ("id: task-" in raw) == (streaming and key == "v1-0")
        assert ("A2A-Version: 1.0" in await text_of(visitor, "request")) == (key == "v1-0")
        method = {"v1-0": "GetTask", "v0-3": "tasks/get"}[key]
        await visitor.page.get_by_role("button", name=method).click()
        await visitor.page.get_by_text("Completed.").wait_for()
        assert json.loads(await text_of(visitor, "raw"))["result"]["status"]["state"].endswith(
            {"v1-0": "TASK_STATE_COMPLETED", "v0-3": "completed"}[key]
        )
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


@pytest.mark.parametrize("key", TITLES)
async def test_an_agent_that_asks_back_is_answered(visitor: Visitor, site: HubProcess, key: str) -> None:
    async with online(site, TaskPeer, agent=TASKS) as agent:
        await visitor.sign_in("alice")
        await speak(visitor, key, agent.handle)
        await ask(visitor, "note looking | ask which one?")
        await visitor.page.get_by_text("The agent asks back.").wait_for()
        assert await text_of(visitor, "reply") == "which one?"
        assert "looking" in await text_of(visitor, "steps")
        assert await visitor.page.get_by_label("This answers the task").is_checked()
        if key == "v0-3":  # the page in version 1.0 is checked with all pages
            await visitor.check()
        await ask(visitor, "the blue one")
        await visitor.page.get_by_text("Completed.").wait_for()
        assert await text_of(visitor, "reply") == "you said: the blue one"
        assert await visitor.page.get_by_label("This answers the task").is_disabled()


@pytest.mark.parametrize("key", TITLES)
async def test_each_artifact_is_shown_once(visitor: Visitor, site: HubProcess, key: str) -> None:
    steps = 'text notes one | more notes  two | data sum {"n": 3} | raw page abcd | say done'
    shown = ["notes: one two", 'sum: {\n  "n": 3\n}\n', "page: page.txt, text/plain, 4 B\n"]
    lines = "(all) => all.map((one) => [...one.children].map((part) => part.textContent).join(': '))"
    async with online(site, TaskPeer, agent=TASKS) as agent:
        await visitor.sign_in("alice")
        await speak(visitor, key, agent.handle)
        for streaming in (True, False):
            await ask(visitor, steps, streaming=streaming)
            await visitor.page.get_by_text("Completed.").wait_for()
            assert await visitor.page.locator("#artifacts li").evaluate_all(lines) == shown
            assert (await text_of(visitor, "steps")).count("artifact") == len(shown)
            assert await text_of(visitor, "reply") == "done"
        await ask(visitor, "text notes alone")
        await visitor.page.get_by_text("No reply: the agent sent artifacts.").wait_for()
        assert await visitor.page.locator("#artifacts li").evaluate_all(lines) == ["notes: alone"]
        await visitor.check_calm()


@pytest.mark.parametrize("key", TITLES)
async def test_a_task_is_left_followed_again_and_canceled(visitor: Visitor, site: HubProcess, key: str) -> None:
    buttons = {"v1-0": ("SubscribeToTask", "CancelTask"), "v0-3": ("tasks/resubscribe", "tasks/cancel")}
    subscribe, cancel = buttons[key]
    async with online(site, TaskPeer, agent=TASKS) as agent:
        await visitor.sign_in("alice")
        await speak(visitor, key, agent.handle)
        await ask(visitor, "say first | hold | say , then second")
        await visitor.page.get_by_text("first", exact=True).wait_for()
        await visitor.page.get_by_role("button", name="Stop reading").click()
        await visitor.page.get_by_text("Stopped.", exact=True).wait_for()
        await visitor.page.get_by_role("button", name=subscribe).click()
        await visitor.page.locator("#steps", has_text="HTTP 200").wait_for()
        assert ("Last-Event-ID: task-" in await text_of(visitor, "request")) == (key == "v1-0")
        agent.release.set()
        await visitor.page.get_by_text("Completed.").wait_for()
        assert await text_of(visitor, "reply") == "first, then second"
        agent.release.clear()
        await visitor.page.get_by_label("the same without waiting").check()
        await visitor.page.get_by_label("Your question").fill("hold")
        await visitor.page.get_by_role("button", name="Send").click()
        await visitor.page.get_by_text("The agent works on it").wait_for()
        await visitor.page.get_by_role("button", name=cancel).click()
        await visitor.page.get_by_text("Canceled.").wait_for()
        assert (await text_of(visitor, "explained")).startswith("canceled")
        agent.release.set()
        await visitor.check_calm()


@pytest.mark.parametrize("key", TITLES)
async def test_mistakes_in_another_dialect_are_explained_too(visitor: Visitor, site: HubProcess, key: str) -> None:
    visitor.expected = ["status of 4"]
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice")
        await speak(visitor, key, agent.handle)
        for number, (mistake, code) in enumerate(CODES.items()):
            await visitor.page.get_by_label("Make a mistake").select_option(mistake)
            await visitor.page.evaluate("document.getElementById('ask-status').textContent = ''")
            # Each mistake in both ways, one in each dialect: the page reads the refusals of both dialects alike.
            await ask(visitor, "hello", streaming=number % 2 == list(TITLES).index(key))
            await visitor.page.get_by_text("Not taken.").wait_for()
            assert (await text_of(visitor, "explained")).startswith(str(code)), mistake
        await visitor.check_calm()
