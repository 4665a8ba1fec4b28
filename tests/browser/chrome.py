"""Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright, expect

PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)  # a shell has no window to draw
PROGRAM = next(filter(None, map(shutil.which, PROGRAMS)), None)
EXPECTED_WITHIN_S = 30
OPTIONS = [
    *("--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server", "--disable-gpu"),
    *("--process-per-site", "--renderer-process-limit=1"),  # a process fewer for each further tab of a visitor
    "--host-resolver-rules=MAP hub.lan 127.0.0.1",  # a name of this machine that is no secure context over http
]

# Every test of this folder: slow, in one event loop with its browser, and skipped without one.
IN_BROWSER = [
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium: install Debian's package `chromium`"),
]


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A headless browser; tabs come from `visitor.visiting`."""
    assert PROGRAM is not None
    expect.set_options(timeout=EXPECTED_WITHIN_S * 1000)  # by itself 5 s, which a page of a busy machine may take
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=PROGRAM, args=OPTIONS)
        yield browser
        await browser.close()
