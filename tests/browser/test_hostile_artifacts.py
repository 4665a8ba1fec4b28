"""Answers whose artifacts have vectors in all that an agent says of them, on every page that shows an answer."""

from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, expect

from lab.agents import TaskPeer, online
from lab.callers import Json
from lab.hub_process import HubProcess
from tests.attempts import Attempts
from tests.browser.chrome import IN_BROWSER
from tests.browser.conversation import ask, said
from tests.browser.hostile import find_intruders
from tests.browser.sessions import api
from tests.browser.test_hostile_files import KINDS, content_of
from tests.browser.vectors import OUTSIDE, VECTORS
from tests.browser.visitor import Visitor, visiting

pytestmark = [*IN_BROWSER, pytest.mark.attack, pytest.mark.deep, pytest.mark.timeout(300)]

PARTS_AT_ONCE = 90  # of one artifact
VECTORS_AT_ONCE = 100  # of one answer
SHARED = ("/shared/", "/s/")
CLICK_ALL = """() => {
  document.querySelectorAll("details:not([open]) > summary, button.image").forEach((one) => one.click());
  document.querySelectorAll("dialog[open]").forEach((one) => one.close());
}"""


class Artist(TaskPeer):
    """Answers with artifacts; the question names the first vector and the one behind the last."""

    async def answer(self, prompt: Json) -> None:
        first, behind = map(int, prompt["text"].split())
        parts = [part for number in range(first, behind) for part in parts_of(number)]
        for number, start in enumerate(range(0, len(parts), PARTS_AT_ONCE)):
            name = VECTORS[(first + number) % len(VECTORS)][:200]
            batch = parts[start : start + PARTS_AT_ONCE]
            await self.artifact(prompt["chatId"], f"a{number}", *batch, name=name, description=name)
        await self.chunk(prompt["chatId"], "\n\n".join(VECTORS[first:behind]), done=True)


def parts_of(number: int) -> Iterable[Json]:
    """A part of each kind that holds the vector, or is named after it."""
    vector, kind = VECTORS[number], KINDS[number % len(KINDS)]
    raw = b64encode(content_of(kind, vector)).decode()
    yield {"text": vector, "mediaType": ("text/html", "text/plain", "text/markdown", "image/svg+xml")[number % 4]}
    yield {"raw": raw, "filename": vector, "mediaType": kind}
    yield {"url": f"{OUTSIDE}/{quote(vector)}", "filename": vector, "mediaType": kind}
    yield {"data": ({vector: vector}, [{vector: vector}])[number % 2], "filename": vector}


async def test_no_artifact_runs(browser: Browser, site: HubProcess, attempts: Attempts) -> None:
    count = attempts.number(short=VECTORS_AT_ONCE, long=len(VECTORS))
    outside: list[str] = []
    async with visiting(browser, site.url) as visitor, online(site, Artist) as agent:
        visitor.page.on("request", lambda request: outside.append(request.url) if OUTSIDE in request.url else None)
        await visitor.sign_in("dora", then=f"/agents/{agent.handle}")
        for first in range(0, count, VECTORS_AT_ONCE):
            await ask(visitor, f"{first} {min(first + VECTORS_AT_ONCE, count)}")
            await said(visitor, "Answered in")
            await expect(visitor.page.locator(".turn:last-child .artifact")).not_to_have_count(0)
            await look(visitor)
        for path in await pages_of_answers(site, agent.handle):
            await visitor.open(path)
            if path.startswith(SHARED):
                await expect(visitor.page.locator(".artifact")).not_to_have_count(0)
            await look(visitor)
    attempts.count("parts of artifacts, on the pages of answers", count * 4)
    assert outside == []


async def pages_of_answers(site: HubProcess, handle: str) -> list[str]:
    """The pages that show dora's answers again: of a thread, of single questions, and of shares."""
    threads = (await api(site, "dora", "GET", "/threads"))["items"]
    pages = [f"/questions/threads/{thread['id']}" for thread in threads]
    for question in (await api(site, "dora", "GET", f"/questions?agent={handle}"))["items"]:
        pages.append(f"/questions/{question['id']}")
        shared = {"taskId": question["taskId"], "audience": "link"}
        made = await api(site, "dora", "POST", "/shares", shared)
        pages += [f"/shared/{made['id']}", f"/s/{made['url'].rpartition('/')[2]}"]
    return pages


async def look(visitor: Visitor) -> None:
    """Open all that can be opened; nothing of it did anything."""
    await visitor.page.evaluate(CLICK_ALL)
    seen = await visitor.seen()  # many parts at once move the page
    assert (seen["pwned"], seen["blocked"], visitor.complaints) == ([], [], []), visitor.page.url
    assert await find_intruders(visitor.page) == [], visitor.page.url
