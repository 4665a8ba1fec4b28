"""`make screenshots`: every page, light and dark, desktop and phone; its weight and its first paint."""

import asyncio
import shutil
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from playwright.async_api import Browser

from tests.browser.chrome import PROGRAM, chromium
from tests.browser.pages import PAGES, Listed
from tests.browser.visitor import DESKTOP, PHONE, Visitor, visiting
from tests.callers import send
from tests.homes import ROOT, embedded_home
from tests.hub_process import HubProcess
from tests.peers import Chunker, Echo, publish

TALLEST = 7000
FOLDER = ROOT / "screenshots"
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
REPLY = [
    "A lifetime is how long ",
    "a reference is good: ",
    "the compiler checks that nobody uses it ",
    "after that.",
]
RUST = {
    "description": "Ask about **ownership** and lifetimes.\n\n- reads no files\n- cites *The Book*",
    "claudeMd": "Answer in three sentences. Show code only when asked.",
    "suggestedPrompts": ["what's a lifetime?", "why does the borrow checker refuse my loop?"],
}
AGENTS = [
    (
        "rust-expert",
        "Answers Rust questions, borrow checker included",
        RUST,
    ),
    ("release-notes", "Knows what changed in which version, and why", {"isolated": False}),
    ("on-call", "Reads the runbook so that you do not have to", {"dailyBudgetQueries": 20}),
]
QUESTIONS = [
    "What is a lifetime in Rust?",
    "What changed in 2.0?",
    "Who is on call?",
    "Why does the borrow checker refuse two mutable references?",
    "Is 1.9 still supported?",
]


async def main() -> int:
    """Take them all; 0, or 1 without a browser."""
    if PROGRAM is None:
        print("no Chromium: install Debian's package `chromium`", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    hub = HubProcess.start(embedded_home(folder / "data"), DEV_LOGIN=1)
    try:
        async with AsyncExitStack() as stack:
            agent = await _populate(hub, stack)
            browser = await stack.enter_async_context(chromium())
            for listed in PAGES:
                await _take(browser, hub, listed, agent)
    finally:
        hub.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _populate(hub: HubProcess, stack: AsyncExitStack) -> str:
    """Agents of a few kinds; the handle of the first, which answers in pieces."""
    token, handles = hub.mint("owner", "session"), []
    for number, (slug, tagline, fields) in enumerate(AGENTS):
        kind = Echo if number else Chunker
        options = {} if number else {"pieces": REPLY}
        peer = kind(hub.url, hub.mint("owner", "channel"), **options)
        await stack.enter_async_context(peer)
        assert peer.session_id is not None
        agent = await publish(hub, token, peer.session_id, slug, tagline=tagline, **fields)
        handles.append(agent["handle"])
        if number == len(AGENTS) - 1:
            await peer.leave()
    for number, question in enumerate(QUESTIONS):
        await send(hub.url, handles[number % len(handles)], question, hub.mint("asker", "session"))
    return str(handles[0])


async def _take(browser: Browser, hub: HubProcess, listed: Listed, agent: str) -> None:
    async with visiting(browser, hub.url) as visitor:
        if listed.signed_in:
            await visitor.sign_in(listed.login)
        for _ in ("cold", "warm"):
            await visitor.go(listed.path.format(agent=agent))
        painted = await visitor.page.evaluate(PAINTED)
        await listed.act(visitor.page)
        for scheme in ("light", "dark"):
            await _picture(visitor, listed.name, scheme)
        print(f"{listed.name:24} {visitor.bytes_read / 1000:6.1f} KB  first paint {painted:4.0f} ms")


async def _picture(visitor: Visitor, name: str, scheme: str) -> None:
    """A window as tall as the page, because a full-page picture leaves holes in long ones."""
    page = visitor.page
    await page.emulate_media(color_scheme=scheme)
    for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        await page.set_viewport_size(viewport)
        height = await page.evaluate("document.documentElement.scrollHeight")
        await page.set_viewport_size({"width": viewport["width"], "height": min(height, TALLEST)})
        await page.evaluate("scrollTo(0, 0)")
        await page.screenshot(path=FOLDER / f"{name}-{scheme}-{size}.png")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
