"""Code that is copied from the developer reference works as it is, with the visitor's own words."""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from lab.agents import Echo, TaskPeer, online
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.reference import TASKS, speak, text_of
from tests.browser.visitor import Visitor
from tests.sdks.environments import ENVIRONMENTS, Missing

pytestmark = IN_BROWSER


NASTY = "it's \"quoted\", ''' $HOME ${HOME} `id` \\n \\ é 🦀 </script> %s"
RUNS = {
    "curl": ["bash", "-c"],
    "Python": [sys.executable, "-c"],
    "TypeScript": [shutil.which("node") or "", "--input-type=module", "-e"],
}


IS_COPIED = """async () =>
  await navigator.clipboard.readText() === document.getElementById("request").textContent"""


@pytest.mark.parametrize("form", RUNS)
async def test_what_is_copied_runs(visitor: Visitor, site: HubProcess, form: str) -> None:
    if not shutil.which(RUNS[form][0]):
        pytest.skip(f"no program for {form}")
    page = visitor.page
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice", then=f"/demos/a2a/?agent={agent.handle}")
        await page.get_by_label(form, exact=True).check()
        if form != "TypeScript":
            token = site.mint("bob", "session")
            assert "echo: hello" in await run(*RUNS[form], await text_of(visitor, "request"), A2A_TOKEN=token)
        await page.get_by_role("button", name="Put a token").click()
        await page.get_by_text("app token is in the request").wait_for()
        for streaming in (True, False):
            question = f"{NASTY} {streaming}"
            await page.locator(f"input[value={'stream' if streaming else 'send'}]").check()
            await page.get_by_label("Your question").fill(question)
            await page.get_by_role("button", name="Copy: What is sent").click()
            await page.wait_for_function(IS_COPIED)
            copied = await page.evaluate("navigator.clipboard.readText()")
            assert [line.strip() for line in copied.splitlines()].count('"jsonrpc": "2.0",') == 1
            said = await run(*RUNS[form], copied)
            last = [line for line in said.splitlines() if line.strip()][-1].removeprefix("data: ")
            answer = json.loads(last)
            task = answer["task"] if streaming else answer["result"]
            assert task["history"][-1]["parts"] == [{"text": f"echo: {question}"}]


SDKS = {
    ("v1-0", "Python SDK"): "python-1",
    ("v1-0", "JavaScript SDK"): "js-1",
    ("v0-3", "Python SDK"): "python-0.3",
    ("v0-3", "JavaScript SDK"): "js-0.3",
}
FAILED = {"v1-0": "TASK_STATE_FAILED", "v0-3": "failed"}


@pytest.mark.parametrize(("key", "form"), SDKS)
async def test_the_lines_for_an_official_sdk_run_and_say_why_a_turn_failed(
    visitor: Visitor, site: HubProcess, key: str, form: str
) -> None:
    async with online(site, Echo) as agent, online(site, TaskPeer, agent=TASKS) as failing:
        asked = [(agent.handle, NASTY), (failing.handle, "say half | fail out of ink")]
        said = await said_by_sdk(visitor, site, key, form, *asked)
        assert said == [f"echo: {NASTY}", f"half\n{FAILED[key]}: out of ink"]
        await visitor.page.get_by_label("The hub's own").check()
        assert await visitor.page.get_by_label(form).is_disabled()
        assert (await text_of(visitor, "request")).startswith("curl ")


END = "=== the end of the lines ==="
# Runs one program after another in one process, which imports the SDK once.
IN_TURN = {
    "py": f"import runpy, sys\nfor one in sys.argv[1:]:\n    runpy.run_path(one)\n    print({END!r})",
    "mjs": f"for (const one of process.argv.slice(1)) {{ await import(one); console.log({END!r}); }}",
}


async def said_by_sdk(
    visitor: Visitor, site: HubProcess, key: str, form: str, *asked: tuple[str, str]
) -> list[str]:
    """The output of the lines for each handle and question, run in the SDK's own environment."""
    try:
        folder = await asyncio.to_thread(ENVIRONMENTS[SDKS[key, form]].ready)
    except Missing as missing:
        pytest.skip(str(missing))
    is_script = form.startswith("JavaScript")
    ending = "mjs" if is_script else "py"
    runner = RUNS["TypeScript"] if is_script else [str(folder / "bin" / "python"), "-c"]
    with tempfile.TemporaryDirectory(dir=folder) as programs:  # there a script finds the SDK
        for number, (handle, question) in enumerate(asked):
            await speak(visitor, key, handle)
            await visitor.page.get_by_label(form).check()
            await visitor.page.get_by_label("Your question").fill(question)
            Path(programs, f"{number}.{ending}").write_text(await text_of(visitor, "request"), encoding="utf-8")
        paths = sorted(map(str, Path(programs).iterdir()))
        token = site.mint("bob", "session")
        said = await run(*runner, IN_TURN[ending], *paths, cwd=folder, A2A_TOKEN=token)
    return [one.strip() for one in said.split(END)[:-1]]


async def run(*command: str, cwd: Path | None = None, **env: str) -> str:
    """The output of a program."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdout=pipe, stderr=pipe, cwd=cwd, env={**os.environ, **env}
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, err.decode()
    return out.decode()
