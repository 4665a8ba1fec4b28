"""Every page, with hostile words in every field that agents, owners, askers and visitors control: nothing runs.

Each field has as many of the vectors as it has room for, the next in turn. A vector does not hide the next one:
one that breaks out runs, is blocked, makes an element that no page has, or breaks a script, and all four are
noted; the others stay plain text. A page without a line in `paths` fails. `test_markdown.py` shows what becomes of
each vector alone in a reply, `test_hostile_rows.py` looks at columns that are short.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterator

import pytest
from django.urls import get_resolver, resolve
from playwright.async_api import Browser

from lab.callers import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.attempts import Attempts
from tests.browser import reference
from tests.browser.chrome import IN_BROWSER
from tests.browser.conversation import ask, reply, said, text_in
from tests.browser.hostile import INTRUDERS, ONE_OF_EACH_KIND, Hostile, find_intruders
from tests.browser.hostile_pages import paths
from tests.browser.hostile_site import written
from tests.browser.sessions import is_live, line, prompt
from tests.browser.test_hostile_answers import EXPORT_OF_GROUP, EXPORTS, FOR_SCRIPTS
from tests.browser.vectors import ELEMENTS, HANDLERS, OUTSIDE, REQUESTS, SVG_AND_MATHML, VECTORS
from tests.browser.visitor import Visitor, visiting

pytestmark = [*IN_BROWSER, pytest.mark.timeout(300)]
# REST refuses two of these characters, and a browser types no carriage return.
TYPEABLE = [vector.translate({1: None, 11: None, 13: 10}) for vector in VECTORS]
# The texts that make no intruder when they are put on an empty page as markup.
UNNOTICED = f"""(texts) => texts.filter((text) => {{
  const page = new DOMParser().parseFromString(text, "text/html");
  return ({INTRUDERS})(page).length === 0;
}})"""
ACTS = {
    "signout", "signin-password", "signin-passkey", "signin-passkey-options", "invitation-revoke", "end-share",
    "own-file-delete", "agent-favourite", "act", "account-revoke", "account-client-revoke", "account-rotate",
    "account-retention", "operator-share", "operator-unshare", "operator-archive", "webhook-page-test",
    "webhook-page-replay", "webhook-page-pause", "webhook-page-resume", "webhook-page-edit",
    "webhook-page-roll-secret", "webhook-page-delete", "thread-change",
}  # fmt: skip
WITHOUT_ROWS = {
    "connect-pyz", "schema", "sockets-json", "sockets-yaml", "jwks", "no-agent-card", "agent-info",
    "rating-extension", "protected-resource", "mcp-protected-resource", "authorization-server",
}  # fmt: skip
OPERATIONS = {"ai-catalog", "ard"}  # served with the APIs
# Routes that show no page. `test_hostile_answers.py` opens those whose answers hold rows.
NO_PAGES = ACTS | WITHOUT_ROWS | OPERATIONS | set(EXPORTS) | set(EXPORT_OF_GROUP) | set(FOR_SCRIPTS)


@pytest.fixture(scope="module")
def open_site(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub that takes webhooks to this machine."""
    hub = HubProcess.start(make_storage("embedded"), DEV_LOGIN=1, WEBHOOK_ALLOW_PRIVATE=1)
    yield hub
    hub.stop()


async def test_there_are_two_hundred_of_them() -> None:
    assert len(set(VECTORS)) == len(VECTORS) >= 200
    assert set(ONE_OF_EACH_KIND) < set(VECTORS)
    assert Hostile(ONE_OF_EACH_KIND).text() == " ".join(ONE_OF_EACH_KIND)


async def test_nothing_runs_on_any_page(browser: Browser, open_site: HubProcess) -> None:
    await walk(browser, open_site, Hostile(ONE_OF_EACH_KIND))


async def test_a_page_that_takes_vectors_for_markup_is_noticed(browser: Browser, open_site: HubProcess) -> None:
    markup = [*ELEMENTS, *HANDLERS, *SVG_AND_MATHML, *REQUESTS]
    async with visiting(browser, open_site.url) as visitor:
        await visitor.open("/signin")
        unnoticed = await visitor.page.evaluate(UNNOTICED, markup)
    assert len(unnoticed) < len(markup) / 10, unnoticed


@pytest.mark.attack
@pytest.mark.deep
async def test_no_vector_runs_on_any_page(browser: Browser, open_site: HubProcess, attempts: Attempts) -> None:
    walks = attempts.number(short=1, long=5)
    for number in range(walks):  # a short field begins with another vector on each walk
        pages = await walk(browser, open_site, Hostile(TYPEABLE, at=number * len(TYPEABLE) // walks))
        attempts.count("pages and forms with all payloads in long fields, and others in short fields", pages)


async def walk(browser: Browser, site: HubProcess, hostile: Hostile) -> int:
    """Write, and look at every page; the number of pages."""
    site.mint("mallory", "session", admin=True)
    async with visiting(browser, site.url) as visitor, written(site, hostile) as found:
        outside: list[str] = []
        visitor.page.on("request", lambda request: outside.append(request.url) if OUTSIDE in request.url else None)
        visitor.expected = ["status of 400", "status of 404"]
        await visitor.sign_in("mallory")
        pages = await look_at_everything(visitor, hostile, found)
        await fill_in_forms(visitor, hostile, found)
    assert outside == []
    return pages + len(FORMS)


async def check_shown(visitor: Visitor) -> None:
    """No vector did anything on the page."""
    await visitor.check_calm()
    assert await find_intruders(visitor.page) == [], visitor.page.url


async def look_at_everything(visitor: Visitor, hostile: Hostile, found: Json) -> int:
    doing = {
        f"/agents/{found['handle']}": converse,
        f"/demos/a2a/?agent={found['handle']}": exchange,
        f"/desk/sessions/{found['session']}": operate,
    }
    visited = paths(hostile, found)
    for path in visited:
        await visitor.page.goto(visitor.url + path, wait_until="domcontentloaded")
        if path in doing:
            await doing[path](visitor, hostile)
        await check_shown(visitor)
    return len(visited)


async def converse(visitor: Visitor, hostile: Hostile) -> None:
    """Ask what the agent's owner proposes; the agent answers with it."""
    await visitor.page.locator("[data-prompt]").first.click()
    question = await visitor.page.get_by_label("Your question").input_value()
    assert "pwned" in question or OUTSIDE in question
    await ask(visitor, question)
    await said(visitor, "Answered in")
    assert await text_in(visitor, "question-text") == question
    await visitor.page.get_by_role("button", name="Raw text").click()
    assert await reply(visitor) == f"echo: {question}"


async def exchange(visitor: Visitor, hostile: Hostile) -> None:
    """The same on the developer reference, in each form in which the request is shown."""
    for number, form in enumerate(("HTTP", "curl", "Python", "TypeScript")):
        await visitor.page.get_by_role("radio", name=form, exact=True).check()
        question = f"{hostile.text()} {form}"
        await reference.ask(visitor, question, streaming=number % 2 == 0)
        await visitor.page.locator("#reply", has_text=f"{form}").wait_for()
        await reference.told(visitor, "Completed.")
        assert await reference.text_of(visitor, "reply") == f"echo: {question}"


async def operate(visitor: Visitor, hostile: Hostile) -> None:
    """The page shows hostile texts of operators and of the agent, which come over the socket."""
    await is_live(visitor)
    await visitor.page.locator("#permission-count").filter(has_text="1").wait_for()
    await visitor.page.get_by_label("Message to the other operators").fill(hostile.text())
    await visitor.page.get_by_role("button", name="Send to the operators").click()
    await visitor.page.locator("#rows > li.op").wait_for()
    await prompt(visitor, f"#1. {hostile.text()}")
    await line(visitor, "#1.", ".reply").wait_for()
    await visitor.page.locator("#waiting .danger").click()
    await visitor.page.locator("#permission-count").filter(has_text="0").wait_for()
    closed = "document.querySelectorAll('details:not([open]) > summary').forEach((one) => one.click())"
    await visitor.page.evaluate(closed)


# Pages whose forms show again what was typed, and the button that sends each.
FORMS = {
    "/signin": "Sign in",
    "/account": "Make a token",
    "/groups": "Create the group",
    "/groups/{group}": "Add",
    "/invitations": "Make a link",
    "/device": "Go on",
    "/desk/connect": "Get a token",
    "/desk/remote": "Look at the card",
    "/desk/agents/{agent}": "Preview the description",
    "/desk/agents/{agent}/audit": "Show",
    "/desk/team/rules": "Save",
    "/desk/network/venues/new": "Add the venue",
    "/desk/network/keys": "Make a key",
    "/webhooks": "Subscribe",
}
FILL = """(text) => {
  const all = document.querySelectorAll("main :is(input:not([type]), [type=text], [type=url], textarea)");
  for (const one of all) one.value = one.maxLength > 0 ? text.slice(0, one.maxLength) : text;
  for (const form of document.forms) form.noValidate = true;
  return all.length;
}"""


async def fill_in_forms(visitor: Visitor, hostile: Hostile, found: Json) -> None:
    """Every text field of each form at once."""
    for path, button in FORMS.items():
        await visitor.open(path.format(**found))
        assert await visitor.page.evaluate(FILL, hostile.text()), path
        await visitor.page.get_by_role("main").get_by_role("button", name=button, exact=True).first.click()
        await visitor.page.wait_for_load_state()
        await check_shown(visitor)


NUMBERED = (
    "agent",
    "failure",
    "set",
    "saved",
    "evaluation",
    "shared",
    "link",
    "webhook",
    "told",
    "delivery",
    "token",
    "proposal",
)


async def test_no_page_is_left_out() -> None:
    found = defaultdict(lambda: str(uuid.UUID(int=0)), dict.fromkeys(NUMBERED, "1"), handle="a/b")
    visited = [path.partition("?")[0] for path in paths(Hostile(["x"]), found)]
    names = {match.url_name for match in map(resolve, visited[:-1])}
    assert names == page_names(get_resolver().url_patterns) - NO_PAGES


def page_names(patterns: list[object]) -> set[str]:
    """Names of all routes outside of the APIs and the admin."""
    found: set[str] = set()
    for pattern in patterns:
        address = str(getattr(pattern, "pattern", ""))
        if address.startswith(("api/", "admin", "network/", "scim/")):
            continue
        inner = getattr(pattern, "url_patterns", None)
        name = getattr(pattern, "name", None)
        found |= page_names(inner) if inner is not None else {name} if name else set()
    return found
