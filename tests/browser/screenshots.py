"""`make screenshots`: every page, light and dark, desktop and phone; its weight and its first paint."""

import asyncio
import shutil
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from playwright.async_api import Browser

from lab import ROOT
from lab.hub_storage import embedded_storage
from tests.browser.chrome import PROGRAM, chromium
from tests.browser.pages import PAGES, Listed
from tests.browser.scene import Scene, playing
from tests.browser.visitor import DESKTOP, PHONE, Visitor, visiting

TALLEST = 7000
FOLDER = ROOT / "screenshots"
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
README_SHOWS = {
    "thread": 1180,
    "agent-all": 1110,
    "ask-owned": 1180,
    "desk-audit": 860,
    "desk-failure": 1040,
    "operator": 830,
}  # heights; `docs/images` holds copies
README_WIDTH = 960
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def main(wanted: str = "*") -> int:
    """Take those of a name, as a shell matches names; 0, or 1 without a browser."""
    if PROGRAM is None:
        print("no Chromium: install Debian's package `chromium`", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    try:
        async with playing(embedded_storage(folder / "data")) as scene, chromium() as browser:
            for listed in PAGES:
                if fnmatch(listed.name, wanted):
                    await _take(browser, scene, listed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _take(browser: Browser, scene: Scene, listed: Listed) -> None:
    async with visiting(browser, scene.hub.url) as visitor:
        if listed.login:
            await visitor.sign_in(listed.login)
        for _ in ("cold", "warm"):
            await visitor.open(listed.path.format(**scene.names))
        painted = await visitor.page.evaluate(PAINTED)
        await listed.act(visitor.page)
        if listed.name in README_SHOWS:
            size = {"width": README_WIDTH, "height": README_SHOWS[listed.name]}
            await visitor.page.set_viewport_size(size)
            await _take_what_is_seen(visitor, f"readme-{listed.name}", "operator" in listed.name)
        for scheme in ("light", "dark"):
            await _picture(visitor, listed.name, scheme)
        print(f"{listed.name:24} {await visitor.weigh() / 1000:6.1f} KB  first paint {painted:4.0f} ms")


async def _picture(visitor: Visitor, name: str, scheme: str) -> None:
    """A window as tall as the page, because a full-page picture leaves holes in long ones."""
    page = visitor.page
    await page.emulate_media(color_scheme=scheme)
    for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        await page.set_viewport_size(viewport)
        height = await page.evaluate("document.documentElement.scrollHeight")
        await page.set_viewport_size({"width": viewport["width"], "height": min(height, TALLEST)})
        await _take_what_is_seen(visitor, f"{name}-{scheme}-{size}")


async def _take_what_is_seen(visitor: Visitor, name: str, is_at_end: bool = False) -> None:
    await visitor.page.evaluate("(top) => scrollTo({top, behavior: 'instant'})", TALLEST if is_at_end else 0)
    await visitor.page.evaluate(DRAWN)
    await visitor.page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:2])))
