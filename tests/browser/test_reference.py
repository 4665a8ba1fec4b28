"""The developer reference: pick an agent, fetch its card, exchange a task, take it along."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor
from tests.callers import Json, bearer, web
from tests.hub_process import HubProcess
from tests.peers import Chunker, Echo, Held, Stall, TaskPeer, online
from tests.sdks.environments import ENVIRONMENTS, Missing

pytestmark = IN_BROWSER
PIECES = ["A lifetime ", "is how long ", "it's good."]
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


async def ask(visitor: Visitor, text: str, *, streaming: bool = True) -> None:
    """Fill in and send."""
    await visitor.page.locator(f"input[value={'stream' if streaming else 'send'}]").check()
    await visitor.page.get_by_label("Your question").fill(text)
    await visitor.page.get_by_role("button", name="Send").click()


async def text_of(visitor: Visitor, element: str) -> str:
    found: str = await visitor.page.evaluate("(id) => document.getElementById(id).textContent", element)
    return found


async def test_a_reply_is_shown_as_it_is_written(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Chunker, pieces=PIECES) as agent:
        await visitor.sign_in("alice")
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        assert await visitor.page.get_by_label("Agent", exact=True).input_value() == agent.handle
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
        await visitor.check()


async def test_what_arrives_is_there_before_the_end(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Held) as agent:
        await visitor.sign_in("alice")
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "hello")
        prompt = await agent.heard("prompt")
        await agent.chunk(prompt["chatId"], "first piece")
        await visitor.page.get_by_text("first piece", exact=True).wait_for()
        assert "COMPLETED" not in await text_of(visitor, "steps")
        await visitor.page.get_by_role("button", name="Stop reading").click()
        await visitor.page.get_by_text("Stopped.").wait_for()
        agent.release.set()
        await visitor.check_calm()


async def test_the_card_is_fetched_and_shown(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo, agent={"tagline": "echoes"}) as agent:
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        await visitor.page.get_by_role("button", name="Fetch the card").click()
        await visitor.page.get_by_text("HTTP 200", exact=True).wait_for()
        card = json.loads(await text_of(visitor, "card-answer"))
        assert card["_clawborrator"]["handle"] == agent.handle
        assert f"GET /api/a2a/v1/agents/{agent.handle}/agent-card.json" in await text_of(visitor, "card-request")
        await visitor.check_calm()


@pytest.mark.parametrize(("mistake", "code"), CODES.items())
async def test_a_mistake_is_answered_and_explained(
    visitor: Visitor, site: HubProcess, mistake: str, code: int
) -> None:
    visitor.expected = ["status of 4"]
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice")
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        await visitor.page.get_by_label("Make a mistake").select_option(mistake)
        await ask(visitor, "hello")
        await visitor.page.get_by_text("Not taken.").wait_for()
        assert (await text_of(visitor, "explained")).startswith(str(code))
        assert json.loads(await text_of(visitor, "raw"))["error"]["code"] == code
        await visitor.check_calm()


async def test_refusals_and_failures_are_explained(visitor: Visitor, site: HubProcess) -> None:
    await visitor.sign_in("alice")
    async with online(site, Stall) as silent, online(site, Echo, agent={"dailyBudgetQueries": 0}) as spent:
        async with online(site, Echo) as gone:
            pass
        for handle, reason in ((gone.handle, "offline"), (spent.handle, "budget"), (silent.handle, "timeout")):
            await visitor.go(f"/demos/a2a/?agent={handle}")
            await ask(visitor, "hello", streaming=False)
            await visitor.page.get_by_text("Failed.").wait_for()
            assert (await text_of(visitor, "explained")).startswith(reason)
            await visitor.check_calm()


async def test_without_a_sign_in_the_page_says_how(visitor: Visitor, site: HubProcess) -> None:
    visitor.expected = ["status of 401"]
    async with online(site, Echo) as agent:
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "hello")
        await visitor.page.get_by_text("Not taken.").wait_for()
        assert (await text_of(visitor, "explained")).startswith("-32010")
        await visitor.page.locator("#try").get_by_role("link", name="Sign in").click()
        await visitor.page.get_by_label("Login").fill("alice")
        await visitor.page.get_by_role("button", name="Sign in").click()
        await visitor.page.wait_for_url(f"**/demos/a2a/?agent={agent.handle}")
        await ask(visitor, "hello")
        await visitor.page.get_by_text("echo: hello").first.wait_for()


async def test_the_list_is_looked_at_again(visitor: Visitor, site: HubProcess) -> None:
    await visitor.sign_in("alice")
    async with online(site, Echo) as first:
        await visitor.go(f"/demos/a2a/?agent={first.handle}")
        async with online(site, Echo) as second:
            await visitor.page.get_by_role("button", name="Look again").click()
            option = visitor.page.locator(f"option[value='{second.handle}']")
            await option.wait_for(state="attached")
            assert await option.text_content() == f"@{second.handle} (online)"
            assert await visitor.page.get_by_label("Agent", exact=True).input_value() == first.handle
            await visitor.check_calm()


async def test_an_agent_closed_to_a_visitor_is_not_shown_to_them(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as open_one:
        await visitor.go("/demos/a2a/?agent=owner/nobody")
        handles = await visitor.page.locator("#agent option").evaluate_all("(all) => all.map((one) => one.value)")
        assert open_one.handle in handles
        assert "owner/nobody" not in handles


# What is taken along works as it is, with the visitor's own words.

NASTY = "it's \"quoted\", ''' $HOME ${HOME} `id` \\n \\ é 🦀 </script> %s"
RUNS = {
    "curl": ["bash", "-c"],
    "Python": [sys.executable, "-c"],
    "TypeScript": [shutil.which("node") or "", "--input-type=module", "-e"],
}


@pytest.mark.parametrize("form", RUNS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_what_is_copied_runs(visitor: Visitor, site: HubProcess, form: str, streaming: bool) -> None:
    if not shutil.which(RUNS[form][0]):
        pytest.skip(f"no program for {form}")
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice")
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        await visitor.page.get_by_role("button", name="Put a token").click()
        await visitor.page.get_by_text("app token is in the request").wait_for()
        await visitor.page.get_by_label(form, exact=True).check()
        await visitor.page.locator(f"input[value={'stream' if streaming else 'send'}]").check()
        await visitor.page.get_by_label("Your question").fill(NASTY)
        await visitor.page.get_by_role("button", name="Copy: What is sent").click()
        await visitor.page.get_by_text("Copied.").wait_for()
        copied = await visitor.page.evaluate("navigator.clipboard.readText()")
        assert copied == await text_of(visitor, "request")
        assert [line.strip() for line in copied.splitlines()].count('"jsonrpc": "2.0",') == 1
        said = await run(*RUNS[form], copied)
    last = [line for line in said.splitlines() if line.strip()][-1].removeprefix("data: ")
    answer = json.loads(last)
    task = answer["task"] if streaming else answer["result"]
    assert task["history"][-1]["parts"] == [{"text": f"echo: {NASTY}"}]


# Other dialects.

TITLES = {"v1-0": "A2A 1.0", "v0-3": "A2A 0.3"}
TASKS: Json = {"agentStyle": "task-generating"}


async def speak(visitor: Visitor, key: str, handle: str) -> None:
    """Open the page at an agent, and choose a dialect."""
    await visitor.go(f"/demos/a2a/?agent={handle}")
    await visitor.page.get_by_label(TITLES[key], exact=True).check()


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
        assert steps.count("chunk") == (len(PIECES) if streaming else 0)
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
        await visitor.check()


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
        await visitor.check()
        await ask(visitor, "the blue one")
        await visitor.page.get_by_text("Completed.").wait_for()
        assert await text_of(visitor, "reply") == "you said: the blue one"
        assert await visitor.page.get_by_label("This answers the task").is_disabled()


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
        await visitor.page.get_by_text("Stopped.").wait_for()
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
        for streaming in (True, False):
            for mistake, code in CODES.items():
                await visitor.page.get_by_label("Make a mistake").select_option(mistake)
                await visitor.page.evaluate("document.getElementById('ask-status').textContent = ''")
                await ask(visitor, "hello", streaming=streaming)
                await visitor.page.get_by_text("Not taken.").wait_for()
                assert (await text_of(visitor, "explained")).startswith(str(code)), mistake
        await visitor.check_calm()


SDKS = {
    ("v1-0", "Python SDK"): "python-1",
    ("v1-0", "JavaScript SDK"): "js-1",
    ("v0-3", "Python SDK"): "python-0.3",
    ("v0-3", "JavaScript SDK"): "js-0.3",
}


@pytest.mark.parametrize(("key", "form"), SDKS)
async def test_the_lines_for_an_official_sdk_run(visitor: Visitor, site: HubProcess, key: str, form: str) -> None:
    async with online(site, Echo) as agent:
        assert await said_by_sdk(visitor, site, key, form, agent.handle, NASTY) == f"echo: {NASTY}"
        await visitor.page.get_by_label("The hub's own").check()
        assert await visitor.page.get_by_label(form).is_disabled()
        assert (await text_of(visitor, "request")).startswith("curl ")


@pytest.mark.parametrize(("key", "form"), SDKS)
async def test_the_lines_for_an_official_sdk_say_why_there_is_no_reply(
    visitor: Visitor, site: HubProcess, key: str, form: str
) -> None:
    asked = {"v1-0": "TASK_STATE_INPUT_REQUIRED", "v0-3": "input-required"}[key]
    failed = {"v1-0": "TASK_STATE_FAILED", "v0-3": "failed"}[key]
    async with online(site, TaskPeer, agent=TASKS) as agent:
        said = await said_by_sdk(visitor, site, key, form, agent.handle, "note looking | ask which one?")
        assert said == f"{asked}: which one?"
        said = await said_by_sdk(visitor, site, key, form, agent.handle, "say half | fail out of ink")
        assert said == f"half\n{failed}: out of ink"
    said = await said_by_sdk(visitor, site, key, form, agent.handle, "hello")
    assert said == f"{failed}: agent channel offline"


async def said_by_sdk(visitor: Visitor, site: HubProcess, key: str, form: str, handle: str, question: str) -> str:
    """What the lines for a question print, run in the SDK's own environment."""
    try:
        folder = await asyncio.to_thread(ENVIRONMENTS[SDKS[key, form]].ready)
    except Missing as missing:
        pytest.skip(str(missing))
    runner = RUNS["TypeScript"] if form.startswith("JavaScript") else [str(folder / "bin" / "python"), "-c"]
    await speak(visitor, key, handle)
    await visitor.page.get_by_label(form).check()
    await visitor.page.get_by_label("Your question").fill(question)
    lines = await text_of(visitor, "request")
    said = await run(*runner, lines, cwd=folder, A2A_TOKEN=site.mint("bob", "session"))
    return said.strip()


async def test_the_token_can_come_from_the_environment(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as agent:
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        for form in ("curl", "Python"):
            await visitor.page.get_by_label(form, exact=True).check()
            said = await run(*RUNS[form], await text_of(visitor, "request"), A2A_TOKEN=site.mint("bob", "session"))
            assert "echo: hello" in said


async def run(*command: str, cwd: Path | None = None, **env: str) -> str:
    """What a program prints."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdout=pipe, stderr=pipe, cwd=cwd, env={**os.environ, **env}
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_the_same_as_text(site: HubProcess) -> None:
    async with web(site.url) as client:
        answer = await client.get("/llms.txt", headers=bearer("nobody"))
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "&" not in answer.text.replace("&&", "")
    assert f"POST {site.url}/api/a2a/v1/agents/OWNER/SLUG" in answer.text
