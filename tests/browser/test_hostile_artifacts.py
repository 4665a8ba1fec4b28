"""Answers whose artifacts have vectors in all that an agent says of them, on every page that shows an answer."""

import json
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, expect

from lab.agents import Echo, TaskPeer, online
from lab.callers import Json, bearer, call, web
from lab.hub_process import HubProcess
from tests.attempts import Attempts
from tests.browser import reference
from tests.browser.chrome import IN_BROWSER
from tests.browser.conversation import ask, said
from tests.browser.hostile import find_intruders
from tests.browser.sessions import api
from tests.browser.test_hostile_files import KINDS, content_of
from tests.browser.vectors import OUTSIDE, RUN, VECTORS
from tests.browser.visitor import Visitor, visiting
from tests.remote.scripts import WAYS, scripted_server

pytestmark = [*IN_BROWSER, pytest.mark.attack, pytest.mark.deep, pytest.mark.timeout(300)]

PARTS_AT_ONCE = 90  # of one artifact
VECTORS_AT_ONCE = 100  # of one answer
SHARED = ("/shared/", "/s/")
CLICK_ALL = """() => {
  document.querySelectorAll("details:not([open]) > summary, button.image").forEach((one) => one.click());
  document.querySelectorAll("dialog[open]").forEach((one) => one.close());
}"""
# What would run, or lead elsewhere, if it were the address of a link: the scheme, and what follows it.
SCHEMES = [
    ("javascript", RUN),
    ("data", f"text/html,<script>{RUN}</script>"),
    ("data", f"image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{RUN}'/>"),
    ("blob", f"{OUTSIDE}/x"),
    ("vbscript", RUN),
    ("file", "///etc/passwd"),
]
# Each in forms that a browser reads as the same: it ignores case, outer spaces and controls, tabs and line breaks.
SPELLINGS = ("{0}:{1}", "{2}:{1}", " \t\r\n{0}:{1}", "\x01\x1f{0}:{1}", "{3}\n{4}\t:{1}", "\x0b{2}\r:{1} ")
ADDRESSES = [
    spelling.format(scheme, rest, scheme.upper(), scheme[:2], scheme[2:])
    for scheme, rest in SCHEMES
    for spelling in SPELLINGS
]
FILES = ".file, .artifact .said"
SHOWN_AND_LEADING = """([addresses, selector]) => {
  const files = [...document.querySelectorAll(selector)];
  const text = files.map((one) => one.textContent).join("\\n");
  const loading = ["href", "xlink:href", "src", "srcset", "action", "formaction", "poster", "data"];
  const attributes = [...document.querySelectorAll("*")].flatMap((one) => [...one.attributes]);
  const leading = attributes.filter(({name, value}) =>
    loading.includes(name) && !["http:", "https:"].includes(URL.parse(value, document.baseURI)?.protocol));
  document.querySelectorAll(".file *").forEach((one) => one.click());
  return [addresses.filter((one) => !text.includes(one)), leading.map(({value}) => value)];
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
    """The pages that show dora's answers again: of threads, of their shares, and of single questions."""
    pages = []
    for thread in (await api(site, "dora", "GET", f"/threads?agent={handle}"))["items"]:
        pages += [f"/questions/threads/{thread['id']}", *await share(site, thread["id"])]
    for question in (await api(site, "dora", "GET", f"/questions?agent={handle}"))["items"]:
        pages.append(f"/questions/{question['id']}")
    return pages


async def share(site: HubProcess, thread_id: str) -> list[str]:
    """The pages of a new share of one of dora's threads; none if all its answers are messages."""
    async with web(site.url, headers=bearer(site.mint("dora", "session"))) as dora:
        answer = await dora.post("/api/v1/shares", json={"threadId": thread_id, "audience": "link"})
    made = answer.json()
    assert answer.status_code == 201 or made["message"] == "it has no answer that could be shared", answer.text
    return [f"/shared/{made['id']}", f"/s/{made['url'].rpartition('/')[2]}"] if answer.is_success else []


async def look(visitor: Visitor) -> None:
    """Open all that can be opened; nothing of it did anything."""
    await visitor.page.evaluate(CLICK_ALL)
    seen = await visitor.seen()  # many parts at once move the page
    assert (seen["pwned"], seen["blocked"], visitor.complaints) == ([], [], []), visitor.page.url
    assert await find_intruders(visitor.page) == [], visitor.page.url


async def test_no_address_of_a_part_is_a_link_but_those_of_the_web(
    browser: Browser, site: HubProcess, attempts: Attempts
) -> None:
    asked: list[str] = []
    async with (
        visiting(browser, site.url) as visitor,
        online(site, Echo, agent=TAKES_ALL | reference.TASKS) as agent,
        scripted_server() as far,
    ):
        visitor.page.on("request", lambda one: asked.append(one.url) if not one.url.startswith(site.url) else None)
        await visitor.sign_in("dora")
        await send_in_each_dialect(site, agent.handle)
        handles = [agent.handle]
        for way in (one for one in WAYS if one.streams and one.binding == "JSONRPC"):
            body = {"name": "Far", "slug": f"far-{len(handles)}", "status": "published"}
            body |= {"remote": {"cardUrl": f"{far}/{way.name}"}}
            handles.append((await api(site, "artist", "POST", "/agents", body))["handle"])
            await visitor.open(f"/agents/{handles[-1]}")
            for script in SCRIPTS:
                await ask(visitor, json.dumps(script))
                await said(visitor, "Answered in")
                await find_addresses(visitor)
        for dialect in ("v1-0", "v0-3"):
            await reference.speak(visitor, dialect, handles[-1])
            await reference.ask(visitor, json.dumps(SCRIPTS[0]))
            await reference.told(visitor, "Completed.")
            await find_addresses(visitor)
        pages = [path for handle in handles for path in await pages_of_answers(site, handle)]
        assert sum(path.startswith(SHARED) for path in pages) >= 2 * (len(handles) + 2)
        for path in pages:
            await visitor.open(path)
            await find_addresses(visitor, are_shown=path.startswith(SHARED))
    attempts.count("addresses of parts that are none of the web, in each dialect", len(ADDRESSES) * len(handles))
    assert asked == []


PARTS = [
    {"url": one, "mediaType": KINDS[number % len(KINDS)]} | ({"filename": "a file"} if number % 2 else {})
    for number, one in enumerate(ADDRESSES)
]
TAKES_ALL = {"defaultInputModes": ["text/plain", *{f"{one.partition('/')[0]}/*" for one in KINDS}]}
# Of a remote server: an artifact of a task, and a message without one.
SCRIPTS: list[Json] = [
    {"events": [{"artifact": {"artifactId": "a", "parts": PARTS}, "append": False, "lastChunk": True}]},
    {"message": {"parts": PARTS}},
]


async def send_in_each_dialect(site: HubProcess, handle: str) -> None:
    """Ask with the addresses as files of the question: in the hub's own dialect, in A2A 1.0 and in 0.3."""
    of_03 = [
        {"kind": "file", "file": {"uri": one["url"], "mimeType": one["mediaType"], "name": "a file"}}
        for one in PARTS
    ]
    for method, version, parts in (
        ("SendMessage", "", [{"text": "look"}, *PARTS]),
        ("SendMessage", "1.0", [{"text": "look"}, *PARTS]),
        ("message/send", "0.3", [{"kind": "text", "text": "look"}, *of_03]),
    ):
        role = "user" if version == "0.3" else "ROLE_USER"
        message = {"messageId": f"m-{version}", "role": role, "parts": parts}
        session = site.mint("dora", "session")
        answer = await call(site.url, handle, session, method, {"message": message}, version=version)
        assert "result" in answer.json(), answer.text


async def find_addresses(visitor: Visitor, *, are_shown: bool = True) -> None:
    """Nothing on the page leads to the addresses, and clicks do nothing. `are_shown`: it has each as a text."""
    if are_shown:
        await visitor.page.locator(FILES).last.wait_for()
    missing, leading = await visitor.page.evaluate(SHOWN_AND_LEADING, [ADDRESSES if are_shown else [], FILES])
    assert (missing, leading) == ([], []), visitor.page.url
    await look(visitor)
