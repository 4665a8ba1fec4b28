"""The developer reference: pick an agent, fetch its card, exchange a task, take it along."""

import asyncio
import json
import os
import shutil
import sys

import pytest

from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor
from tests.callers import bearer, web
from tests.hub_process import HubProcess
from tests.peers import Chunker, Echo, Held, Stall, online

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

NASTY = 'it\'s "quoted", $HOME `id` \\n \\ é 🦀 </script> %s'
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
        said = await run(*RUNS[form], copied)
    last = [line for line in said.splitlines() if line.strip()][-1].removeprefix("data: ")
    answer = json.loads(last)
    task = answer["task"] if streaming else answer["result"]
    assert task["history"][-1]["parts"] == [{"text": f"echo: {NASTY}"}]


async def test_the_token_can_come_from_the_environment(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as agent:
        await visitor.go(f"/demos/a2a/?agent={agent.handle}")
        for form in ("curl", "Python"):
            await visitor.page.get_by_label(form, exact=True).check()
            said = await run(*RUNS[form], await text_of(visitor, "request"), A2A_TOKEN=site.mint("bob", "session"))
            assert "echo: hello" in said


async def run(*command: str, **env: str) -> str:
    """What a program prints."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env={**os.environ, **env})
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_the_same_as_text(site: HubProcess) -> None:
    async with web(site.url) as client:
        answer = await client.get("/llms.txt", headers=bearer("nobody"))
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "&" not in answer.text.replace("&&", "")
    assert f"POST {site.url}/api/a2a/v1/agents/OWNER/SLUG" in answer.text
