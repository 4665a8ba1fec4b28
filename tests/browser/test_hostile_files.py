"""Hostile files of callers and of sessions, opened and embedded with the hub's origin: nothing runs or loads."""

import pytest
from playwright.async_api import Browser, Error, Page, Request, Route

from lab.agents import Echo, online
from lab.callers import bearer, web
from lab.hub_process import HubProcess
from lab.pictures import png
from tests.attempts import Attempts
from tests.browser.chrome import IN_BROWSER
from tests.browser.test_files import PAGE_OF_PDF
from tests.browser.vectors import OUTSIDE, RUN, VECTORS
from tests.browser.visitor import Visitor, visiting

pytestmark = [*IN_BROWSER, pytest.mark.attack, pytest.mark.deep, pytest.mark.timeout(600)]

SVG = '<svg xmlns="http://www.w3.org/2000/svg">'
XHTML = '<html xmlns="http://www.w3.org/1999/xhtml"><body>'
XSLT = f'<?xml-stylesheet type="text/xsl" href="{OUTSIDE}/x.xsl"?>'
JS_IN_PDF = b"/OpenAction<</S/JavaScript/JS(app.alert(1))>>"
# Each type with a file of it around a vector; the `{}` is the vector, which is also code of its own.
AROUND = {
    "text/html": f"<!doctype html><title>x</title><script>{RUN}</script>{{}}",
    "text/html; charset=utf-7": f"<html>+ADw-script+AD4-{RUN}+ADw-/script+AD4-{{}}",
    "image/svg+xml": f"{SVG}<script>{RUN}</script><image href='{OUTSIDE}/x'/><text><![CDATA[{{}}]]></text></svg>",
    "application/xhtml+xml": f"{XHTML}<script>{RUN}</script><p><![CDATA[{{}}]]></p></body></html>",
    "text/xml": f"<?xml version='1.0'?>{XSLT}{XHTML}<script>{RUN}</script><![CDATA[{{}}]]></body></html>",
    "application/javascript": f"{RUN}; /* {{}} */",
    "text/css": f"@import '{OUTSIDE}/x.css'; * {{{{background: url({OUTSIDE}/x.png)}}}} /* {{}} */",
    "text/plain": f"<script>{RUN}</script>{{}}",
    "multipart/x-mixed-replace": f"--b\r\nContent-Type: text/html\r\n\r\n<script>{RUN}</script>{{}}\r\n--b--",
    "message/rfc822": f"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<script>{RUN}</script>{{}}",
    "application/octet-stream": f"<script>{RUN}</script>{{}}",
}
TEXTS = list(AROUND)
# Pictures and papers that are also something else; `{}` is the vector.
BYTES = {
    "image/gif": b"GIF89a\x01\x00\x01\x00/*<script>pwned(1)</script>{}*/=pwned(1);",
    "image/png": png(9) + b"<script>pwned(1)</script>{}",
    "application/pdf": PAGE_OF_PDF.replace(b"/Catalog", b"/Catalog" + JS_IN_PDF) + b"<script>pwned(1)</script>{}",
}
KINDS = [*TEXTS, *BYTES]
FORBIDDEN_IN_NAMES = {ord(one): "_" for one in "/\\\t\n\r\x0b\x01\u2028\u2029\u202e\u2066\u2069"}
EMBEDDED = """<script src="{0}"></script><link rel="stylesheet" href="{0}"><iframe src="{0}"></iframe>
<object data="{0}"></object><embed src="{0}"><img src="{0}"><video src="{0}"></video>"""
EMBEDDED_AT_ONCE = 20
LOADED_WITHIN_MS = 120_000
RAN = "() => window.seen ? window.look().pwned : []"


async def test_no_file_runs(browser: Browser, site: HubProcess, attempts: Attempts) -> None:
    vectors = VECTORS[:: attempts.number(short=10, long=1)]
    async with visiting(browser, site.url, accept_downloads=False) as visitor:
        faults: list[str] = []

        def note(request: Request) -> None:
            if OUTSIDE in request.url:
                faults.append(f"{visitor.page.url}: asks for {request.url}")

        visitor.page.on("request", note)
        await visitor.sign_in("carol")
        async with online(site, Echo, owner="carol") as agent:
            addresses = await upload(site, str(agent.session_id), vectors)
            for address in addresses:
                faults += await open_directly(visitor, address)
            for first in range(0, len(addresses), EMBEDDED_AT_ONCE):
                faults += await embed(visitor, addresses[first : first + EMBEDDED_AT_ONCE])
    attempts.count("hostile files, opened and embedded", len(addresses), len(faults))
    assert faults == []


async def upload(site: HubProcess, session: str, vectors: list[str]) -> list[str]:
    """Upload a file of the next kind for each vector, the vector as its name: to ask with, or to a session."""
    addresses = []
    async with web(site.url, headers=bearer(site.mint("carol", "session"))) as carol:
        for number, vector in enumerate(vectors):
            kind = KINDS[number % len(KINDS)]
            name = vector.translate(FORBIDDEN_IN_NAMES)[:200]
            place = "/api/v1/files" if number // len(KINDS) % 2 else f"/api/v1/sessions/{session}/files"
            file = {"file": (name, content_of(kind, vector), kind)}
            answer = await carol.post(place, files=file)
            assert answer.status_code == 201, answer.text
            path = f"/api/v1/files/{answer.json()['id']}"
            addresses += [f"{path}/content", f"{path}/preview"]
    return addresses


def content_of(kind: str, vector: str) -> bytes:
    if kind in BYTES:
        return BYTES[kind].replace(b"{}", vector.encode())
    return AROUND[kind].replace("{{", "{").replace("}}", "}").replace("{}", vector).encode()


async def open_directly(visitor: Visitor, address: str) -> list[str]:
    """Open a file as a page of its own; what went wrong."""
    try:
        answer = await visitor.page.goto(visitor.url + address, wait_until="load")
    except Error as stopped:
        return [] if "Download is starting" in stopped.message else [f"{address}: {stopped.message}"]
    assert answer is not None
    kind = answer.headers["content-type"]
    is_shown = answer.ok and not kind.startswith("image/")
    return [f"{address}: {one}" for one in [*await ran(visitor.page), *([f"shown as {kind}"] if is_shown else [])]]


async def embed(visitor: Visitor, addresses: list[str]) -> list[str]:
    """Have a page with the hub's origin and no policy of its own embed files in every way; what went wrong."""
    page = "".join(EMBEDDED.format(one) for one in addresses)

    async def answer(route: Route) -> None:
        await route.fulfill(body=f"<!doctype html><title>x</title>{page}", content_type="text/html")

    await visitor.page.route("**/embedding", answer)
    await visitor.page.goto(f"{visitor.url}/embedding", wait_until="load", timeout=LOADED_WITHIN_MS)
    found = await ran(visitor.page)
    await visitor.page.unroute("**/embedding", answer)
    return found


async def ran(page: Page) -> list[str]:
    """What ran in a page and its frames."""
    found = []
    for frame in page.frames:
        try:
            found += [f"{frame.url} ran {one}" for one in await frame.evaluate(RAN)]
        except Error:  # a frame whose file is saved is taken away
            if not frame.is_detached():
                raise
    return found
