"""Somebody in front of a browser, and what every page must be for them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, CDPSession, Page

MOST_BYTES = 100_000
MOST_SHIFT = 0.01
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}

# Runs before the page's own scripts: it notes what moves, what the policy blocks, and what a payload would do.
WATCH = """
window.seen = {shift: 0, blocked: [], pwned: []};
window.pwned = (what) => window.seen.pwned.push(String(what));
window.alert = window.confirm = window.prompt = window.pwned;
document.addEventListener("securitypolicyviolation", (event) =>
  window.seen.blocked.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.seen.shift += entry.value;
}).observe({type: "layout-shift", buffered: true});
"""

# What Tab must reach: a group of radio buttons counts once.
REACHABLE = """() => {
  const all = document.querySelectorAll(
    'a[href], button:enabled, input:enabled:not([type=hidden]), select, textarea, summary, [tabindex="0"]');
  const groups = new Set();
  window.reach = new Set([...all].filter((one) => {
    if (!one.checkVisibility({visibilityProperty: true})) return false;
    if (one.type !== "radio") return true;
    const is_new = !groups.has(one.name);
    groups.add(one.name);
    return is_new;
  }));
  document.activeElement?.blur();
  return window.reach.size;
}"""
REACHED = """() => {
  const one = document.activeElement;
  const style = getComputedStyle(one);
  const member = one.type === "radio" ? [...window.reach].find((other) => other.name === one.name) : one;
  window.reach.delete(member);
  const is_marked = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return is_marked || one === document.body ? "" : one.outerHTML.slice(0, 200);
}"""

TOO_WIDE = """() => {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  const all = [...document.querySelectorAll("body *")];
  const wide = all.filter((one) => one.getBoundingClientRect().right > innerWidth);
  return wide.slice(0, 5).map((one) => one.outerHTML.slice(0, 150));
}"""


@dataclass
class Visitor:
    """One tab of a browser of its own; what its console complains of is kept."""

    url: str
    page: Page
    network: CDPSession
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    bytes_read: float = 0

    async def go(self, path: str) -> None:
        """Open a page as if for the first time, and wait for its scripts."""
        self.bytes_read = 0
        await self.network.send("Network.setCacheDisabled", {"cacheDisabled": True})
        await self.page.goto(self.url + path, wait_until="networkidle")
        await self.network.send("Network.setCacheDisabled", {"cacheDisabled": False})

    async def sign_in(self, login: str, *, then: str = "/") -> None:
        """The development sign-in, as a person does it."""
        await self.page.goto(f"{self.url}/signin?next={then}")
        await self.page.get_by_label("Login").fill(login)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_url(self.url + then)
        await self.page.wait_for_load_state("networkidle")

    async def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.page.evaluate("window.seen")
        return found

    async def check(self) -> None:
        """What every state of every page must be: small, calm, within the policy, accessible, fit for a phone."""
        await self.check_calm()
        assert self.bytes_read < MOST_BYTES, f"{self.page.url}: {self.bytes_read} bytes"
        await self.check_accessible()
        await self.check_phone()

    async def check_calm(self) -> None:
        """No script of others ran, nothing was blocked, nothing complained, nothing moved by itself."""
        seen = await self.seen()
        unexpected = [one for one in self.complaints if not any(words in one for words in self.expected)]
        assert (seen["pwned"], seen["blocked"], unexpected) == ([], [], []), self.page.url
        assert seen["shift"] < MOST_SHIFT, f"{self.page.url}: moved by {seen['shift']}"

    async def check_accessible(self) -> None:
        """Axe finds nothing, in light and in dark."""
        for scheme in ("light", "dark"):
            await self.page.emulate_media(color_scheme=scheme)
            results = await Axe().run(self.page)
            found = [
                (one["id"], [node["html"] for node in one["nodes"]][:5]) for one in results.response["violations"]
            ]
            assert not found, f"{self.page.url} in {scheme}: {json.dumps(found, indent=1)}"
        await self.page.emulate_media(color_scheme="light")

    async def check_phone(self) -> None:
        """Nothing is wider than a small phone."""
        await self.page.set_viewport_size(PHONE)
        too_wide = await self.page.evaluate(TOO_WIDE)
        await self.page.set_viewport_size(DESKTOP)
        assert not too_wide, f"{self.page.url}: {too_wide}"

    async def check_keyboard(self) -> None:
        """Tab reaches all that can be used, and shows where it is."""
        count = await self.page.evaluate(REACHABLE)
        for _ in range(count + 2):
            await self.page.keyboard.press("Tab")
            unmarked = await self.page.evaluate(REACHED)
            assert not unmarked, f"{self.page.url}: no focus ring on {unmarked}"
        left = await self.page.evaluate("() => [...window.reach].map((one) => one.outerHTML.slice(0, 150))")
        assert not left, f"{self.page.url}: Tab does not reach {left}"


@asynccontextmanager
async def visiting(browser: Browser, url: str, **options: Any) -> AsyncIterator[Visitor]:
    """A new visitor with an empty browser, who may copy; `options` of the browser's context."""
    context = await browser.new_context(viewport=DESKTOP, **options)
    await context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
    await context.add_init_script(WATCH)
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

    def count(event: dict[str, Any]) -> None:
        visitor.bytes_read += event["encodedDataLength"]

    network.on("Network.loadingFinished", count)
    await network.send("Network.enable")
    yield visitor
    await context.close()
