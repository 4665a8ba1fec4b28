"""A new user, in one go: from the first page to an answer and its place in the audit."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.reference import text_of
from tests.browser.visitor import Visitor

pytestmark = [*IN_BROWSER, pytest.mark.timeout(180)]
QUESTION = "what's a lifetime?"
FIRST, REST = "A lifetime is ", "how long a reference is good."
# Answers in two pieces; the second once a file is there. The question is on its standard input.
PROGRAM = f'printf "{FIRST}"; until [ -e "$GO_ON" ]; do sleep 0.05; done; printf "{REST}"'


@asynccontextmanager
async def terminal(home: Path, script: str, *arguments: str) -> AsyncIterator[Path]:
    """A newcomer's bash, at home in an empty folder, runs a script; the file that lets `PROGRAM` go on."""
    go_on = home / "go-on"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(home), "GO_ON": str(go_on)}
    pipe, command = asyncio.subprocess.PIPE, ("bash", "-c", script, "bash", *arguments)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=home, env=env, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    try:
        yield go_on
        assert process.returncode is None, (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), 20)


async def test_a_newcomer_does_all_of_it_in_one_go(
    visitor: Visitor, other: Visitor, site: HubProcess, tmp_path: Path
) -> None:
    await sign_in_from_the_front_page(visitor)
    command = await get_a_command(visitor)
    async with terminal(tmp_path, command, PROGRAM) as go_on:
        await publish_once_it_is_there(visitor)
        await ask_from_another_login(other, go_on)
        await find_the_ask(visitor)
    for one in (visitor, other):
        await one.check_calm()


async def sign_in_from_the_front_page(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.open("/")
    await page.get_by_role("banner").get_by_role("link", name="Sign in").click()
    await page.get_by_label("Login").fill("newcomer")
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("main").get_by_role("link", name="My desk").click()


async def get_a_command(visitor: Visitor) -> str:
    """The wizard's command, with a program of one's own in place of the echo, as the page proposes."""
    page = visitor.page
    await page.get_by_role("link", name="Connect an agent").first.click()
    await page.get_by_label("Its name").fill("Rust expert")
    await page.get_by_role("button", name="Get a token").click()
    await expect(page.get_by_text("No program has connected")).to_be_visible()
    await visitor.check_calm()
    proposed = await text_of(visitor, "command")
    assert proposed.endswith(" --echo")
    command = proposed.removesuffix("--echo") + '--exec -- sh -c "$1"'
    command = command.replace("&& python3", "&& exec python3")  # signals reach the program, and no shell
    return f"{await text_of(visitor, 'environment')}\n{command}"


async def publish_once_it_is_there(visitor: Visitor) -> None:
    """The page notices the agent by itself, and leads on."""
    page = visitor.page
    await page.get_by_role("link", name="Publish @rust-expert").click()
    await page.get_by_label("Tagline").fill("Answers Rust questions")
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_text("@newcomer/rust-expert is there")).to_be_visible()
    await visitor.check_calm()
    await page.get_by_role("link", name="Back to the desk").click()


async def ask_from_another_login(other: Visitor, go_on: Path) -> None:
    """Found in the directory, asked, and the first half is there before the second is written."""
    page = other.page
    await other.sign_in("curious", then="/agents")
    await page.get_by_label("Search by handle").fill("rust questions")
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="@newcomer/rust-expert").click()
    await page.get_by_label("Your question").fill(QUESTION)
    await page.get_by_role("button", name="Ask", exact=True).click()
    answer = page.locator(".turn [data-part=reply]")
    await expect(answer).to_have_text(FIRST)
    await expect(page.get_by_role("button", name="Stop following")).to_be_visible()
    go_on.touch()
    await expect(answer).to_have_text(FIRST + REST)
    await expect(page.get_by_text("Answered in")).to_be_visible()
    await other.check_calm()


async def find_the_ask(visitor: Visitor) -> None:
    """Find the ask and its caller without a terminal."""
    page = visitor.page
    await page.get_by_role("link", name="Who asked @newcomer/rust-expert").click()
    ask = page.locator(".asks li")
    await expect(ask).to_have_count(1)
    await expect(ask.locator("> .said")).to_have_text(QUESTION)
    for words in ("@curious", "answered"):
        await expect(ask).to_contain_text(words)
    await visitor.check_calm()
