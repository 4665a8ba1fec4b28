"""Every page, with hostile words in every field that agents, owners, askers and visitors control: nothing runs.

Each field has as many of the vectors as it has room for, the next in turn. A vector does not hide the next one:
one that breaks out runs, is blocked, or breaks a script, and all three are noted; the others stay plain text. A
page without a line in `paths` fails. `test_markdown.py` shows what becomes of each vector alone in a reply.
"""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import quote, urlencode

import pytest
from django.urls import get_resolver, resolve
from playwright.async_api import Browser

from lab.agents import Echo, publish
from lab.callers import Json, bearer, send, web
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.browser import reference
from tests.browser.chrome import IN_BROWSER
from tests.browser.conversation import ask, reply, said, text_in
from tests.browser.pages import CONSENT
from tests.browser.scene import find_ask, make_rows
from tests.browser.sessions import api, is_live, line, prompt, request_permission, tail
from tests.browser.vectors import ONE_OF_EACH_KIND, OUTSIDE, VECTORS, Hostile
from tests.browser.visitor import Visitor, visiting
from tests.gateway.client import GatewayClient

pytestmark = [*IN_BROWSER, pytest.mark.timeout(300)]
AT_ONCE = 7  # of all vectors: `make test` takes one of each kind in turn, on one walk
TYPEABLE = [vector.replace("\x01", "") for vector in VECTORS]  # REST refuses this character
WALKS = [
    pytest.param(ONE_OF_EACH_KIND, id="one-of-each-kind"),
    *(
        pytest.param(TYPEABLE[first : first + AT_ONCE], id=f"from-{first}", marks=pytest.mark.deep)
        for first in range(0, len(TYPEABLE), AT_ONCE)
    ),
]
# Routes that show no page: they act, or answer a script or a download.
NO_PAGES = {
    "signout", "signin-password", "signin-passkey", "signin-passkey-options", "invitation-revoke", "connect-pyz",
    "end-share", "own-file-delete", "palette", "agent-favourite", "act", "group-export",
    "account-revoke", "account-client-revoke", "account-rotate", "account-retention", "account-export",
    "agent-standing", "reference-agents", "desk-states", "desk-connect-state", "desk-audit-csv", "desk-costs-csv",
    "desk-network-venues-csv",
    "operator-share", "operator-unshare", "operator-archive", "webhook-page-test",
    "webhook-page-replay", "webhook-page-pause", "webhook-page-resume", "webhook-page-edit",
    "webhook-page-roll-secret", "webhook-page-delete", "schema", "sockets-json", "sockets-yaml",
    "llms-txt", "ai-catalog", "ard", "jwks", "no-agent-card", "agent-info", "rating-extension",
    "protected-resource", "mcp-protected-resource", "authorization-server", "thread-change", "thread-export",
}  # fmt: skip


@pytest.fixture(scope="module")
def open_site(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub that takes webhooks to this machine."""
    hub = HubProcess.start(make_storage("embedded"), DEV_LOGIN=1, WEBHOOK_ALLOW_PRIVATE=1)
    yield hub
    hub.stop()


async def test_there_are_sixty_of_them() -> None:
    assert len(set(VECTORS)) == len(VECTORS) >= 60
    assert set(ONE_OF_EACH_KIND) < set(VECTORS)
    assert Hostile(ONE_OF_EACH_KIND).text() == " ".join(ONE_OF_EACH_KIND)


@pytest.mark.parametrize("vectors", WALKS)
async def test_nothing_runs_on_any_page(browser: Browser, open_site: HubProcess, vectors: list[str]) -> None:
    hostile = Hostile(vectors)
    open_site.mint("mallory", "session", admin=True)
    async with visiting(browser, open_site.url) as visitor, written(open_site, hostile) as found:
        outside: list[str] = []
        visitor.page.on("request", lambda request: outside.append(request.url) if OUTSIDE in request.url else None)
        visitor.expected = ["status of 400", "status of 404"]
        await visitor.sign_in("mallory")
        await look_at_everything(visitor, hostile, found)
        await fill_in_forms(visitor, hostile, found)
    assert outside == []


async def look_at_everything(visitor: Visitor, hostile: Hostile, found: Json) -> None:
    doing = {
        f"/agents/{found['handle']}": converse,
        f"/demos/a2a/?agent={found['handle']}": exchange,
        f"/desk/sessions/{found['session']}": operate,
    }
    for path in paths(hostile, found):
        await visitor.page.goto(visitor.url + path, wait_until="domcontentloaded")
        if path in doing:
            await doing[path](visitor, hostile)
        await visitor.check_calm()


async def converse(visitor: Visitor, hostile: Hostile) -> None:
    """Ask what the agent's owner proposes; the agent answers with it."""
    await visitor.page.locator("[data-prompt]").first.click()
    question = await visitor.page.get_by_label("Your question").input_value()
    assert "pwned" in question
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
    await prompt(visitor, f"{hostile.text()} #1.")
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
        await visitor.check_calm()


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


def paths(hostile: Hostile, found: Json) -> list[str]:
    """Every page of what was written, and hostile words in every address; the last is of no page."""
    agent, session = f"/desk/agents/{found['agent']}", f"/desk/sessions/{found['session']}"
    network, webhook = "/desk/network", f"/webhooks/{found['told']}"
    evaluations = f"/desk/evaluations/{found['set']}"

    def searching(path: str, *names: str) -> str:
        return f"{path}?{urlencode({name: hostile.text(200) for name in names})}"

    filters = ("q", "category", "location", "venue", "from", "key", "day", "tz")
    return [
        "/",
        searching("/agents", "q", "page"),
        f"/agents?q={found['handle']}",
        f"/agents/{found['handle']}",
        "/files",
        searching("/files", "page"),
        "/shares",
        searching("/shares", "page", "received"),
        *(f"/shared/{found['shared']}", f"/s/{found['link']}", f"/s/{quote(hostile.text(), safe='')}"),
        "/questions",
        searching("/questions", "q", "agent", "state", "page"),
        *("/questions/all", f"/questions/threads/{found['thread']}"),
        *(f"/questions/{found[ask]}" for ask in ("ask", "reported")),
        searching("/questions/all", "q", "agent", "state", "tz"),
        f"/demos/a2a/?agent={found['handle']}",
        searching("/demos/a2a/", "agent"),
        searching("/signin", "next"),
        CONSENT.replace("Notebook", quote(hostile.text(60))),
        searching("/device", "user_code"),
        "/join/0123456789abcdef0123456789abcdef",
        searching("/groups", "page"),
        f"/groups/{found['group']}",
        f"/groups/{found['group']}/erase",
        "/groups/join/0123456789abcdef0123456789abcdef",
        f"/staff/accounts/{found['group']}",
        searching("/staff/accounts/chief", "sessions", "tokens", "clients", "groups"),
        *("/invitations", "/account", "/account/erase", "/health", "/limits"),
        searching("/docs", "q"),
        *("/docs/errors", "/docs/api", "/docs/api/sessions"),
        searching("/desk", "agents", "sessions"),
        searching("/desk/alerts", "confirm"),
        f"/desk/failures?{urlencode({'agent': Hostile(hostile.vectors).text(200)})}",
        f"/desk/failures/{found['failure']}",
        searching("/desk/evaluations", "agent", "page"),
        searching(evaluations, "by", "page"),
        *(f"{evaluations}/settings", f"{evaluations}/questions/new", f"{evaluations}/questions/{found['saved']}"),
        f"{evaluations}/runs/{found['evaluation']}",
        "/desk/costs",
        searching("/desk/costs", "by", "days"),
        f"/desk/bulk?action=halt&agent={found['agent']}",
        f"/desk/publish?session={found['session']}",
        searching("/desk/publish", "session"),
        searching("/desk/remote", "name"),
        searching("/desk/connect", "name"),
        f"/desk/connect/{found['token']}",
        *(agent, f"{agent}/published", f"{agent}/delete", f"{agent}/remote", f"{agent}/audit", f"{agent}/ratings"),
        searching(f"{agent}/audit", "asker", "tz", "outcome", "q", "days", "page"),
        *(session, f"{session}/rows", f"{session}/files", f"{session}/delete"),
        searching(session, "before"),
        "/desk/team",
        searching("/desk/team", "of"),
        *("/desk/team/rules", "/desk/team/agents/alpha", f"/desk/team/proposals/{found['proposal']}"),
        *(network, f"{network}/venues", f"{network}/venues/new", f"{network}/venues/import"),
        searching(f"{network}/venues", *filters),
        *(f"{network}/{kind}s/{found[f'network_{kind}']}" for kind in ("venue", "key", "booking")),
        *(f"{network}/{kind}" for kind in ("keys", "bookings", "log", "rules")),
        searching(f"{network}/bookings", *filters),
        *(f"{network}/revenue?by={by}" for by in ("customer", "key", "venue", quote(hostile.text()))),
        searching(f"{network}/log", *filters),
        "/demos/agnt/",
        *("/webhooks", f"/webhooks/{found['webhook']}", f"/webhooks/{found['webhook']}/deliveries"),
        searching(webhook, "agent", "event"),
        f"{webhook}/deliveries/{found['delivery']}",
        f"/{quote(hostile.text())}",
    ]


@asynccontextmanager
async def written(site: HubProcess, hostile: Hostile) -> AsyncIterator[Json]:
    """An agent, a session beside it, a token and a webhook of mallory's, with hostile words in every field."""
    token, channel = site.mint("mallory", "session"), site.mint("mallory", "channel")
    async with (
        Echo(site.url, channel) as agent,
        Echo(site.url, channel, host=hostile.text(100), cwd=hostile.text(100)) as session,
    ):
        assert agent.session_id is not None
        fields: Json = {name: hostile.text() for name in ("description", "claudeMd", "personalizationPrompt")}
        fields |= {"name": hostile.text(120), "tagline": hostile.text(160), "suggestedPrompts": [hostile.text()]}
        published = await publish(site, token, agent.session_id, f"hostile-{agent.register['pid']}", **fields)
        body = webhook(hostile) | {"events": ["agent.dispatched"], "filters": None}
        told = await api(site, "mallory", "POST", "/webhooks", body)
        task = await send(site.url, published["handle"], hostile.text(), token)
        shares = [
            await api(site, "mallory", "POST", "/shares", {"taskId": task["id"], "audience": audience})
            for audience in ("everyone", "link")
        ]
        threads = await api(site, "mallory", "GET", "/threads?state=all")
        deliveries = await api(site, "mallory", "GET", f"/webhooks/{told['id']}/deliveries")
        await happen(session, hostile)
        await upload(site, str(session.session_id), hostile)
        yield {
            "agent": published["id"],
            "handle": published["handle"],
            "session": session.session_id,
            "token": (await api(site, "mallory", "POST", "/tokens/channel", {"name": hostile.text(64)}))["id"],
            "told": told["id"],
            "shared": shares[0]["id"],
            "link": shares[1]["url"].rpartition("/")[2],
            "thread": threads["items"][0]["id"],
            "ask": await find_ask(site, "mallory", published["handle"]),
            "reported": await report(site, published["handle"], hostile),
            "delivery": deliveries["items"][0]["id"],
            "webhook": (await api(site, "mallory", "POST", "/webhooks", webhook(hostile)))["id"],
            "proposal": await deliberate(site, channel, hostile),
            **await asyncio.to_thread(make_rows, site, f"make_hostile('mallory', {hostile.vectors!r})"),
        }


async def report(site: HubProcess, handle: str, hostile: Hostile) -> str:
    """Let a visitor ask the agent, and report a problem to its owner; the id of the ask."""
    await send(site.url, handle, hostile.text(), site.mint("visitor", "session"))
    ask = await find_ask(site, "visitor", handle)
    await api(site, "visitor", "POST", f"/questions/{ask}/problem", {"text": hostile.text()})
    return ask


async def deliberate(site: HubProcess, channel: str, hostile: Hostile) -> int:
    """Let agents of a team propose, and vote with a reason; the number of the proposal."""
    about = {"correlationId": str(uuid.uuid4())}
    async with GatewayClient(site.url, channel, agentId="alpha") as alpha:
        said = {"proposal": hostile.text(), "reasoning": hostile.text()}
        await alpha.send("proposal", said, metadata=about)
        await alpha.find("response")
        await alpha.send("vote", {"vote": "approve", "reasoning": hostile.text()}, metadata=about)
        await alpha.find("response", lambda frame: "vote" in frame["content"].get("result", {}))
    number: int = (await api(site, "mallory", "GET", "/team/proposals"))["items"][0]["id"]
    return number


async def happen(session: Echo, hostile: Hostile) -> None:
    """Let an agent's program report its work."""
    said = {"tool_name": hostile.text(), "message": hostile.text(), "plan": {hostile.text(): hostile.text()}}
    await tail(session, hostile.text(60), **said)
    request_id = "".join(filter(str.isprintable, hostile.text(100)))  # the hub takes no others
    await request_permission(session, request_id, tool=hostile.text(200), preview=hostile.text())


async def upload(site: HubProcess, session: str, hostile: Hostile) -> None:
    name = hostile.text().translate({ord(one): "_" for one in "/\\\t\n\r\u2028\u2029\u202e"})
    async with web(site.url, headers=bearer(site.mint("mallory", "session"))) as owner:
        answer = await owner.post(f"/api/v1/sessions/{session}/files", files={"file": (name, b"x", "text/html")})
    assert answer.status_code == 201, answer.text


def webhook(hostile: Hostile) -> Json:
    address = f"http://127.0.0.1:9/{quote(hostile.text())}"
    return {"url": address, "events": [hostile.word(64)], "filters": {"routingName": hostile.text(80)}}
