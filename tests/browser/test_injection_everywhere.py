"""Every page, with hostile words in every field that agents, owners and askers control: nothing of them runs.

Each field alone meets every vector where its page has its tests (`test_injection.py`, `test_directory.py`,
`test_agent_page.py`, `test_desk_injection.py`, `test_operator_view.py`, `test_webhooks_page.py`). Here no page is
left out: a new one without a line in `paths` fails.
"""

import asyncio
import itertools
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import httpx
import pytest
from django.urls import get_resolver, resolve
from playwright.async_api import Browser

from lab.agents import Echo, publish
from lab.callers import Json, bearer, send, web
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage, manage
from tests.browser.chrome import IN_BROWSER
from tests.browser.pages import CONSENT
from tests.browser.sessions import is_live, request_permission, tail
from tests.browser.vectors import ONE_OF_EACH_KIND, OUTSIDE, THE_OTHERS
from tests.browser.visitor import Visitor, visiting
from tests.gateway.client import GatewayClient

pytestmark = [*IN_BROWSER, pytest.mark.timeout(300)]
AT_ONCE = 7  # of the others: `make test` takes one of each kind in turn, on one walk
TYPEABLE = [vector.replace("\x01", "") for vector in ONE_OF_EACH_KIND + THE_OTHERS]  # REST refuses this character
KINDS = len(ONE_OF_EACH_KIND)
WALKS = [
    pytest.param(TYPEABLE[:KINDS], id="one-of-each-kind"),
    *(
        pytest.param(TYPEABLE[first : first + AT_ONCE], id=f"from-{first}", marks=pytest.mark.deep)
        for first in range(0, len(TYPEABLE), AT_ONCE)
    ),
]
# Routes that show no page: they act, or answer a script or a download.
NO_PAGES = {
    "signout", "signin-password", "signin-passkey", "signin-passkey-options", "invitation-revoke", "connect-pyz",
    "account-revoke", "account-rotate", "account-retention", "account-export",
    "agent-standing", "reference-agents", "desk-states", "desk-connect-state", "desk-audit-csv", "desk-costs-csv",
    "desk-network-venues-csv",
    "operator-share", "operator-unshare", "operator-archive", "webhook-page-test",
    "webhook-page-replay", "webhook-page-pause", "webhook-page-resume", "webhook-page-edit",
    "webhook-page-roll-secret", "webhook-page-delete", "schema", "sockets-json", "sockets-yaml",
    "llms-txt", "ai-catalog", "ard", "jwks", "no-agent-card", "agent-info",
    "protected-resource", "mcp-protected-resource", "authorization-server",
}  # fmt: skip


@dataclass
class Hostile:
    """A few vectors, taken in turn by each field."""

    words: Iterator[str]

    def text(self, at_most: int = 20_000) -> str:
        return next(self.words)[:at_most]


@pytest.fixture(scope="module")
def open_site(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub that takes webhooks to this machine."""
    hub = HubProcess.start(make_storage("embedded"), DEV_LOGIN=1, WEBHOOK_ALLOW_PRIVATE=1)
    yield hub
    hub.stop()


@pytest.mark.parametrize("vectors", WALKS)
async def test_nothing_runs_on_any_page(browser: Browser, open_site: HubProcess, vectors: list[str]) -> None:
    hostile = Hostile(itertools.cycle(vectors))
    open_site.mint("mallory", "session", admin=True)
    async with visiting(browser, open_site.url) as visitor, written(open_site, hostile) as found:
        await visitor.sign_in("mallory")
        await look_at_everything(visitor, hostile, found)


async def look_at_everything(visitor: Visitor, hostile: Hostile, found: Json) -> None:
    outside: list[str] = []
    visitor.page.on("request", lambda request: outside.append(request.url) if OUTSIDE in request.url else None)
    visitor.expected = ["status of 400", "status of 404"]
    for path in paths(hostile, found):
        await visitor.page.goto(visitor.url + path, wait_until="domcontentloaded")
        await visitor.check_calm()
        if path == f"/desk/sessions/{found['session']}":
            await operate(visitor, hostile)
    assert outside == []


async def test_no_page_is_left_out() -> None:
    numbers = {
        "agent": 1,
        "webhook": 1,
        "told": 1,
        "delivery": 1,
        "token": 1,
        "session": "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
        "proposal": 1,
        "network": dict.fromkeys(("venue", "key", "booking"), "0" * 8 + "-0000" * 3 + "-" + "0" * 12),
    }
    visited = [
        path.partition("?")[0] for path in paths(Hostile(itertools.cycle("x")), numbers | {"handle": "a/b"})
    ]
    names = {match.url_name for match in map(resolve, visited[:-1])}
    assert names == page_names(get_resolver().url_patterns) - NO_PAGES


def page_names(patterns: list[object]) -> set[str]:
    """Names of all routes outside of the APIs and the admin."""
    found: set[str] = set()
    for pattern in patterns:
        address = str(getattr(pattern, "pattern", ""))
        if address.startswith(("api/", "admin")):
            continue
        inner = getattr(pattern, "url_patterns", None)
        name = getattr(pattern, "name", None)
        found |= page_names(inner) if inner is not None else {name} if name else set()
    return found


def paths(hostile: Hostile, found: Json) -> list[str]:
    """Every page of what was written, and hostile words in every address; the last is of no page."""
    agent, session = f"/desk/agents/{found['agent']}", f"/desk/sessions/{found['session']}"
    return [
        "/",
        f"/agents?{urlencode({'q': hostile.text(), 'page': hostile.text()})}",
        f"/agents?q={found['handle']}",
        f"/agents/{found['handle']}",
        "/questions",
        f"/questions?{urlencode({name: hostile.text(200) for name in ('q', 'agent', 'state', 'tz')})}",
        f"/demos/a2a/?agent={found['handle']}",
        f"/demos/a2a/?{urlencode({'agent': hostile.text()})}",
        f"/signin?{urlencode({'next': hostile.text()})}",
        f"{CONSENT.replace('Notebook', quote(hostile.text(60)))}",
        f"/device?{urlencode({'user_code': hostile.text()})}",
        "/join/0123456789abcdef0123456789abcdef",
        "/invitations",
        "/account",
        "/account/erase",
        f"/docs?{urlencode({'q': hostile.text()})}",
        "/docs/errors",
        "/docs/api",
        "/docs/api/sessions",
        f"/desk?{urlencode({'agents': hostile.text(), 'sessions': hostile.text()})}",
        f"/desk/alerts?{urlencode({'confirm': hostile.text()})}",
        "/desk/costs",
        f"/desk/costs?{urlencode({'by': hostile.text(), 'days': hostile.text()})}",
        f"/desk/bulk?{urlencode({'action': 'halt', 'agent': found['agent']})}",
        f"/desk/publish?session={found['session']}",
        f"/desk/remote?{urlencode({'name': hostile.text()})}",
        f"/desk/connect?{urlencode({'name': hostile.text()})}",
        f"/desk/connect/{found['token']}",
        agent,
        f"{agent}/published",
        f"{agent}/delete",
        f"{agent}/remote",
        f"{agent}/audit",
        f"{agent}/audit?{urlencode(dict.fromkeys(('asker', 'tz', 'outcome', 'q'), hostile.text()))}",
        session,
        f"{session}?{urlencode({'before': hostile.text()})}",
        f"{session}/rows",
        f"{session}/files",
        f"{session}/delete",
        "/desk/team",
        f"/desk/team?{urlencode({'of': hostile.text()})}",
        "/desk/team/rules",
        "/desk/team/agents/alpha",
        f"/desk/team/proposals/{found['proposal']}",
        *network_paths(hostile, found["network"]),
        "/webhooks",
        f"/webhooks/{found['webhook']}",
        f"/webhooks/{found['webhook']}/deliveries",
        f"/webhooks/{found['told']}?{urlencode({'agent': hostile.text(), 'event': hostile.text()})}",
        f"/webhooks/{found['told']}/deliveries/{found['delivery']}",
        "/health",
        "/limits",
        f"/{quote(hostile.text())}",
    ]


def network_paths(hostile: Hostile, ids: dict[str, str]) -> list[str]:
    """The pages of a network."""
    filters = {
        name: hostile.text(128) for name in ("q", "category", "location", "venue", "from", "key", "day", "tz")
    }
    return [
        "/desk/network",
        "/desk/network/venues",
        f"/desk/network/venues?{urlencode(filters)}",
        "/desk/network/venues/new",
        "/desk/network/venues/import",
        f"/desk/network/venues/{ids['venue']}",
        "/desk/network/keys",
        f"/desk/network/keys/{ids['key']}",
        "/desk/network/bookings",
        f"/desk/network/bookings?{urlencode(filters)}",
        f"/desk/network/bookings/{ids['booking']}",
        *(f"/desk/network/revenue?by={by}" for by in ("customer", "key", "venue", quote(hostile.text()))),
        "/desk/network/log",
        f"/desk/network/log?{urlencode(filters)}",
        "/desk/network/rules",
        "/demos/agnt/",
    ]


@asynccontextmanager
async def written(site: HubProcess, hostile: Hostile) -> AsyncIterator[Json]:
    """An agent, a session beside it, a token and a webhook of mallory's, with hostile words in every field."""
    token, channel = site.mint("mallory", "session"), site.mint("mallory", "channel")
    async with (
        Echo(site.url, channel) as agent,
        Echo(site.url, channel, host=hostile.text(100), cwd=hostile.text(100)) as session,
        web(site.url, headers=bearer(token)) as owner,
    ):
        assert agent.session_id is not None
        fields: Json = {name: hostile.text() for name in ("description", "claudeMd", "personalizationPrompt")}
        fields |= {"name": hostile.text(120), "tagline": hostile.text(160), "suggestedPrompts": [hostile.text()]}
        published = await publish(site, token, agent.session_id, f"hostile-{agent.register['pid']}", **fields)
        told = await made(owner, "/webhooks", webhook(hostile) | {"events": ["agent.dispatched"], "filters": None})
        await send(site.url, published["handle"], hostile.text(), token)
        deliveries = (await owner.get(f"/api/v1/webhooks/{told['id']}/deliveries")).json()["items"]
        await happen(session, hostile)
        await upload(owner, str(session.session_id), hostile)
        yield {
            "agent": published["id"],
            "handle": published["handle"],
            "session": session.session_id,
            "token": (await made(owner, "/tokens/channel", {"name": hostile.text(64)}))["id"],
            "told": told["id"],
            "delivery": deliveries[0]["id"],
            "webhook": (await made(owner, "/webhooks", webhook(hostile)))["id"],
            "proposal": await deliberate(site, owner, channel, hostile),
            "network": await asyncio.to_thread(make_network, site, hostile),
        }


def make_network(site: HubProcess, hostile: Hostile) -> dict[str, str]:
    """The ids of a venue, a key and a booking with hostile words in every field."""
    words = [hostile.text(2000) for _ in range(20)]
    code = f"from tests.browser.network_rows import make_hostile; make_hostile('mallory', {words!r})"
    made = manage(site.home.env, "shell", "--no-imports", "-c", code).splitlines()[-1]
    ids: dict[str, str] = json.loads(made)
    return ids


async def deliberate(site: HubProcess, owner: httpx.AsyncClient, channel: str, hostile: Hostile) -> int:
    """What agents of a team propose, and why they vote; the number of the proposal."""
    about = {"correlationId": str(uuid.uuid4())}
    async with GatewayClient(site.url, channel, agentId="alpha") as alpha:
        said = {"proposal": hostile.text(), "reasoning": hostile.text()}
        await alpha.send("proposal", said, metadata=about)
        await alpha.find("response")
        await alpha.send("vote", {"vote": "approve", "reasoning": hostile.text()}, metadata=about)
        await alpha.find("response", lambda frame: "vote" in frame["content"].get("result", {}))
    proposals = (await owner.get("/api/v1/team/proposals")).json()["items"]
    number: int = proposals[0]["id"]
    return number


async def happen(session: Echo, hostile: Hostile) -> None:
    """What an agent's program says of its work."""
    said = {"tool_name": hostile.text(), "message": hostile.text(), "plan": {hostile.text(): hostile.text()}}
    await tail(session, hostile.text(60), **said)
    request_id = "".join(filter(str.isprintable, hostile.text(100)))  # the hub takes no others
    await request_permission(session, request_id, tool=hostile.text(200), preview=hostile.text())


async def upload(owner: httpx.AsyncClient, session: str, hostile: Hostile) -> None:
    name = hostile.text().translate({ord(one): "_" for one in "/\\\t\n\r\u2028\u2029\u202e"})
    answer = await owner.post(f"/api/v1/sessions/{session}/files", files={"file": (name, b"x", "text/html")})
    assert answer.status_code == 201, answer.text


def webhook(hostile: Hostile) -> Json:
    address = f"http://127.0.0.1:9/{quote(hostile.text())}"
    return {"url": address, "events": [hostile.text(64).split()[0]], "filters": {"routingName": hostile.text(80)}}


async def made(owner: httpx.AsyncClient, path: str, body: Json) -> Json:
    answer = await owner.post(f"/api/v1{path}", json=body)
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    return found


async def operate(visitor: Visitor, hostile: Hostile) -> None:
    """What comes over the socket, and what operators tell each other."""
    await is_live(visitor)
    await visitor.page.locator("#permission-count").filter(has_text="1").wait_for()
    await visitor.page.get_by_label("Message to the other operators").fill(hostile.text())
    await visitor.page.get_by_role("button", name="Send to the operators").click()
    await visitor.page.locator("#rows > li.op").wait_for()
    closed = "document.querySelectorAll('details:not([open]) > summary').forEach((one) => one.click())"
    await visitor.page.evaluate(closed)
    await visitor.check_calm()
