"""A visitor with a browser, and what every page must be for a visitor."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, BrowserContext, CDPSession, Locator, Page

from lab.waiting import eventually
from tests.browser.looks import (
    AXE,
    AXE_OF_COLOURS,
    DEAD_ANCHORS,
    KINDS_OF_TEXT,
    NOTE_FOCUS,
    OF_COLOURS,
    OVERLAPS,
    REACHABLE,
    TOO_WIDE,
    WALKED,
    WEIGHT,
)

MAX_BYTES = 120_000
MAX_SHIFT = 0.01
SETTLED_WITHIN_S = 20
LOOKS_AGAIN_WITHIN_MS = 5000
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}

# Runs before the page's own scripts: it notes what moves, what the policy blocks, and what a payload would do.
WATCH = """
window.seen = {shift: 0, moved: [], blocked: [], pwned: []};
window.pwned = (what) => window.seen.pwned.push(String(what));
window.alert = window.confirm = window.prompt = window.pwned;
document.addEventListener("securitypolicyviolation", (event) =>
  window.seen.blocked.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
// The browser forgives what moves within 500 ms of an input. Here they begin with the frame after the page handled
// it, because a busy machine handles it late; what a test fills in or clicks by a script is an input, too.
const FORGIVEN_MS = 500;
// Bound here, because a test may install a clock of its own.
const now = performance.now.bind(performance), frame = requestAnimationFrame.bind(window);
const inputs = [];
const noteInput = () => {
  const input = {from: now(), to: now()};
  inputs.push(input);
  frame(() => { input.to = now(); });
};
for (const kind of ["pointerdown", "keydown", "click", "input", "change", "drop", "resize"])
  addEventListener(kind, noteInput, true);
const noteShifts = (entries) => {
  for (const {value, startTime, hadRecentInput, sources} of entries) {
    if (hadRecentInput || inputs.some(({from, to}) => from <= startTime && startTime < to + FORGIVEN_MS)) continue;
    window.seen.shift += value;
    window.seen.moved.push([value, ...sources.map(({node}) => (node?.outerHTML ?? "a text").slice(0, 100))]);
  }
};
const shifts = new PerformanceObserver((list) => noteShifts(list.getEntries()));
shifts.observe({type: "layout-shift", buffered: true});
window.look = () => {
  noteShifts(shifts.takeRecords());
  return window.seen;
};
"""

TAB = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}

# The next frame is painted, and the scripts of the page have nothing left to do.
IDLE = (
    "() => new Promise((done) => requestAnimationFrame(() => requestIdleCallback(() => done(), {timeout: 1000})))"
)

checked_kinds: set[str] = set()  # of text, on all pages of this run: axe found no fault in their colours


@dataclass
class Visitor:
    """One tab of a browser of its own; what its console complains of is kept.

    `requests`: those under way, each with its document and address; `begun`: how many there were; `document`: the
    one that is shown. No event says that the document before gave up what it asked for. `is_profile_spent`: the
    profile has something that no emptying takes away, so no other visitor may have it.
    """

    url: str
    page: Page
    network: CDPSession
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    requests: dict[str, tuple[str, str]] = field(default_factory=dict)
    begun: int = 0
    document: str = ""
    session: str = ""
    is_profile_spent: bool = False

    async def open(self, path: str) -> None:
        """Open a page, and wait until it has loaded and its scripts have what they fetch at once."""
        self.requests.clear()
        await self.page.goto(self.url + path)
        try:
            async with asyncio.timeout(SETTLED_WITHIN_S):
                await self._settled()
        except TimeoutError:
            raise AssertionError(f"{self.page.url} still asks for {self._under_way}") from None

    @property
    def _under_way(self) -> list[str]:
        return [url for document, url in self.requests.values() if document == self.document]

    async def _settled(self) -> None:
        begun = -1
        while self._under_way or begun != self.begun:
            begun = self.begun
            await self.page.evaluate(IDLE)

    async def sign_in(self, login: str, *, then: str = "") -> None:
        """Send the form of the development sign-in without showing it, and open the page `then`, if any."""
        form = await self.page.request.get(f"{self.url}/signin")
        found = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', await form.text())
        assert found is not None, await form.text()
        fields = {"csrfmiddlewaretoken": found[1], "login": login, "next": "/signin"}
        answer = await self.page.request.post(f"{self.url}/signin", form=fields)
        assert answer.ok, await answer.text()
        if then:
            await self.open(then)

    async def be(self, session: str) -> None:
        """Have this token of a session, or none; leave the page, whose scripts ask as the user before."""
        if session == self.session:
            return
        self.session = session
        await self.page.goto("about:blank")
        await self.page.context.clear_cookies(name="cw_session")
        if session:
            cookie: Any = {"name": "cw_session", "value": session, "url": self.url}
            await self.page.context.add_cookies([cookie])
        self.complaints.clear()

    async def stop_clock(self) -> None:
        """Give the pages that are opened from now on a clock that the test moves."""
        self.is_profile_spent = True
        await self.page.clock.install()

    async def see_later(self, shown: Locator, text: str) -> None:
        """Let time pass in the browser until the page, which looks again every few seconds, shows a text.

        The page was opened after `stop_clock()`.
        """

        async def looked() -> bool:
            await self.page.clock.fast_forward(LOOKS_AGAIN_WITHIN_MS)
            return await shown.inner_text() == text

        await eventually(looked, f"{self.page.url} shows {text}")

    async def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.page.evaluate("look()")
        return found

    async def check(self) -> None:
        """Check the state of the page: small, calm, within the policy, accessible, fit for a phone."""
        await self.check_weight()
        await self.check_accessible()
        dead = await self.page.evaluate(DEAD_ANCHORS)
        assert not dead, f"{self.page.url} links to {dead}"
        await self.check_overlaps()
        await self.check_calm()  # late enough to see what moves after a while
        await self.check_phone()

    async def weigh(self) -> int:
        """The bytes that a visitor reads who opens the page for the first time."""
        weight: int = await self.page.evaluate(WEIGHT)
        return weight

    async def check_weight(self) -> None:
        """The page is small, with its scripts and styles."""
        weight = await self.weigh()
        assert weight < MAX_BYTES, f"{self.page.url}: {weight} bytes"

    async def check_calm(self) -> None:
        """No script of others ran, nothing was blocked, nothing complained, nothing moved by itself."""
        seen = await self.seen()
        unexpected = [one for one in self.complaints if not any(words in one for words in self.expected)]
        assert (seen["pwned"], seen["blocked"], unexpected) == ([], [], []), self.page.url
        assert seen["shift"] < MAX_SHIFT, f"{self.page.url}: moved by {seen['shift']}: {seen['moved']}"

    async def check_accessible(self) -> None:
        """Axe finds nothing, in light and in dark."""
        await self.page.emulate_media(color_scheme="light")
        await self._find_no_fault(AXE, OF_COLOURS)
        await self.check_colours()
        await self.page.emulate_media(color_scheme="dark")
        await self.check_colours()
        await self.page.emulate_media(color_scheme="light")

    async def check_colours(self) -> None:
        """Axe finds nothing in the colours that the page has now, of texts of kinds that no page had before."""
        kinds = set(await self.page.evaluate(KINDS_OF_TEXT)) - checked_kinds
        if kinds:
            await self._find_no_fault(AXE_OF_COLOURS, [OF_COLOURS, sorted(kinds)])
            checked_kinds.update(kinds)

    async def _find_no_fault(self, look: str, given: Any) -> None:
        if await self.page.evaluate("typeof axe") == "undefined":
            await self.page.evaluate(AXE_SCRIPT)
        if found := await self.page.evaluate(look, given):
            is_dark = await self.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
            scheme = "dark" if is_dark else "light"
            raise AssertionError(f"{self.page.url} in {scheme}: {json.dumps(found, indent=1)}")

    async def check_overlaps(self) -> None:
        """No text is painted over another one."""
        overlaps = await self.page.evaluate(OVERLAPS)
        assert not overlaps, f"{self.page.url}: {overlaps}"

    async def check_phone(self) -> None:
        """Nothing is wider than a small phone, and no text is over another one."""
        await self.page.set_viewport_size(PHONE)
        too_wide = await self.page.evaluate(TOO_WIDE)
        await self.check_overlaps()
        await self.page.set_viewport_size(DESKTOP)
        assert not too_wide, f"{self.page.url}: {too_wide}"

    async def check_keyboard(self) -> None:
        """Tab reaches all that can be used, and shows where it is."""
        walked = await self._walk()
        while walked["is_replaced"]:  # by what the page fetched meanwhile, and the focus with it
            walked = await self._walk()
        assert not walked["unmarked"], f"{self.page.url}: no focus ring on {walked['unmarked']}"
        assert not walked["left"], f"{self.page.url}: Tab does not reach {walked['left']}"

    async def _walk(self) -> dict[str, Any]:
        count = await self.page.evaluate(REACHABLE)
        await self.page.evaluate(NOTE_FOCUS)
        keys = ["rawKeyDown"] * (count + 2) + ["keyUp"]  # Tab is held down, and repeats
        await asyncio.gather(
            *(self.network.send("Input.dispatchKeyEvent", {"type": kind, **TAB}) for kind in keys)
        )
        walked: dict[str, Any] = await self.page.evaluate(WALKED)
        return walked


@asynccontextmanager
async def visiting(browser: Browser, url: str, **options: Any) -> AsyncIterator[Visitor]:
    """A new visitor with an empty browser; `options` of the browser's context."""
    context = await new_profile(browser, **options)
    yield await new_visitor(context, url)
    await context.close()


async def new_profile(browser: Browser, **options: Any) -> BrowserContext:
    """An empty profile of a browser whose pages are watched."""
    context = await browser.new_context(viewport=DESKTOP, **options)
    await context.add_init_script(WATCH)
    return context


async def new_visitor(context: BrowserContext, url: str) -> Visitor:
    """A visitor with a tab in a profile, who may copy. By a host name over plain http no page asks for that."""
    if "hub.lan" not in url:
        await context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
    page = await context.new_page()
    network = await context.new_cdp_session(page)
    visitor = Visitor(url, page, network)
    page.on("pageerror", lambda error: visitor.complaints.append(f"{page.url}: {error}"))
    page.on(
        "console",
        lambda said: (
            visitor.complaints.append(f"{page.url}: {said.text}") if said.type in ("error", "warning") else None
        ),
    )

    def begin(event: dict[str, Any]) -> None:
        visitor.begun += 1
        visitor.requests[event["requestId"]] = (event["loaderId"], event["request"]["url"])

    def end(event: dict[str, Any]) -> None:
        visitor.requests.pop(event["requestId"], None)

    def show(event: dict[str, Any]) -> None:
        if "parentId" not in event["frame"]:
            visitor.document = event["frame"]["loaderId"]

    network.on("Page.frameNavigated", show)
    network.on("Network.requestWillBeSent", begin)
    network.on("Network.loadingFinished", end)
    network.on("Network.loadingFailed", end)
    await network.send("Page.enable")
    await network.send("Network.enable")
    return visitor
