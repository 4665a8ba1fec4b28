"""What the APIs answer about hostile rows, opened as a page: nothing runs, and no cell begins a formula."""

import json
import re
from functools import partial
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Error

from lab.waiting import eventually
from tests.attempts import Attempts
from tests.browser.chrome import IN_BROWSER
from tests.browser.looking import Looking, Rows
from tests.browser.visitor import Visitor
from tests.native.formulas import find_formulas
from tests.tenancy.routes import served

pytestmark = [*IN_BROWSER, pytest.mark.attack, pytest.mark.deep, pytest.mark.timeout(600)]

ACTIVE = re.compile(r"html|xml|svg|javascript|pdf|multipart|rfc822")  # types that a browser would show or run
PLAIN = ("application/json", "text/plain")  # browsers never take these for HTML
SAVES = "Download is starting"  # what the browser says of an answer that it does not show
# The addresses that are not opened, each with the reason.
SIGN_IN = "leads to the page of a provider for signing in, and shows no rows"
OF_TOKENS = "takes a token in a header alone, so that no browser opens it: 401 for a session"
LEFT_OUT = {
    "/api/a2a/v1/agents/{owner}/{slug}/tasks/{task_id}:subscribe": "does not end",
    "/api/v1/auth/oauth/callback": SIGN_IN,
    "/api/v1/auth/oauth/start": SIGN_IN,
    "/api/v1/auth/oidc/{number}/callback": SIGN_IN,
    "/api/v1/auth/oidc/{number}/start": SIGN_IN,
    "/api/v1/auth/spa/start": SIGN_IN,
    "/agent-status": OF_TOKENS,
    "/agent-status/{agent_name}": OF_TOKENS,
    "/api/channel/files/{file_id}": OF_TOKENS,
    "/network/venues": OF_TOKENS,
    "/network/webhooks": OF_TOKENS,
    "/network/webhooks/{webhook_id}": OF_TOKENS,
    "/api/v1/sessions/{public_id}/screenshot": "the hub manages no desktops: 404 for all ids",
    "/api/v1/files/{file_id}/preview": "is of pictures and PDF: test_hostile_files.py opens it",
    "/api/v1/team/sessions/export": "has to be asked for by a log's names, in which the rows have vectors",
    "/api/v1/desktops/{desktop}/shares": "there are no desktops: 404 for all ids",
    "/api/v1/shared-links/{token}": "shows what /api/v1/shares/{share_id} shows",
    "/v1/models/{model}": "shows what /v1/models shows of the same agent",
    "/v1/responses/{response_id}": "has ids of answers that the call of OpenAI made alone",
}
# The name of a parameter, and of an owner's row.
ROWS = {
    "public_id": "session", "agent_id": "agent", "set_id": "set", "run_id": "evaluation", "failure_id": "failure",
    "webhook_id": "told", "delivery_id": "delivery", "proposal_id": "proposal", "venue_id": "network_venue",
    "booking_id": "network_booking", "ask_id": "ask", "chat_id": "ask", "group_slug": "group", "file_id": "file",
    "letter_id": "letter", "slug": "slug", "owner": "login", "account": "login", "thread_id": "thread",
    "share_id": "share", "agent_name": "team_agent", "task": "protocol_task", "step": "protocol_step",
    "artifact": "protocol_artifact", "task_id": "task",
    "config_id": "push_config",
}  # fmt: skip
OF_ALL = {"given": "v1", "metric": "events.total"}  # values that are no row's
# Other rows for the addresses that hold a text: those of the agent that an owner asked, or of one far away.
OTHER_ROWS = {"{task_id}": {"owner": "asked_owner", "slug": "asked_slug"}, "card-change": {"agent_id": "far"}}
VERSION_WANTED = ("extendedAgentCard", "/tasks")
# Answers of routes outside of the APIs that hold rows, by the names of the routes.
EXPORTS = {
    "thread-export": "/questions/threads/{thread}/export?form=markdown",
    "account-export": "/account/export",
    "desk-audit-csv": "/desk/agents/{agent}/audit.csv",
    "desk-costs-csv": "/desk/costs.csv",
    "desk-network-venues-csv": "/desk/network/venues.csv",
}
EXPORT_OF_GROUP = {"group-export": "/groups/{group}/export"}
OF_MAKER = "/api/v1/groups/{group_slug}/invitations"  # as the export: for the user who made the group
FOR_SCRIPTS = {
    "agent-standing": "/agents/{handle}/standing",
    "reference-agents": "/demos/a2a/agents",
    "desk-states": "/desk/states",
    "desk-connect-state": "/desk/connect/{token}/state",
    "palette": "/palette",
    "llms-txt": "/llms.txt",
}
FORMS = ("/questions/threads/{thread}/export?form=json", "/api/v1/threads/{thread}/export?form=json")


async def test_no_answer_does_anything(looking: Looking, rows: Rows, attempts: Attempts) -> None:
    owner = dict(rows.owners[0])
    owner["login"], _, owner["slug"] = owner["handle"].partition("/")
    exports = [path.format(**owner) for path in (*EXPORTS.values(), *FORMS)]
    addresses = [path.format(**owner) for path in FOR_SCRIPTS.values()]
    opened = sorted({one.removeprefix("GET ") for one in served() if one.startswith("GET ")} - set(LEFT_OUT))
    addresses += [address_of(path, owner) for path in opened if "/admin/" not in path and path != OF_MAKER]
    logs = [f"/api/v1/admin/log/export?form={form}" for form in ("csv", "jsonl")]
    of_staff = [*(address_of(path, owner) for path in opened if "/admin/" in path), *logs]
    chief, maker = rows.hub.mint("chief", "session", admin=True), rows.hub.mint("other", "session")
    of_group = [path.format(**owner) for path in EXPORT_OF_GROUP.values()]
    saved: set[str] = set()
    for session, wanted in (
        (owner["token_of_session"], [*exports, *addresses]),
        (maker, [*of_group, address_of(OF_MAKER, owner)]),
        (chief, of_staff),
    ):
        await looking.visitor.be(session)
        for address in wanted:
            saved |= {address} if await look_at(looking, address) else set()
    looking.visitor.expected = ["status of 401"]
    looking.end()
    bills = [one.read_text() for one in Path(rows.hub.home.env["DATA_DIR"]).glob("invoices/*/*.csv")]
    looking.faults += [f"a bill: formula {one!r}" for bill in bills for one in find_formulas(bill)]
    attempts.count("bills with hostile names of customers", len(bills))
    attempts.count("addresses of APIs about hostile rows, opened as a page", looking.pages + len(saved))
    assert {*exports, *of_group, *logs} <= saved
    assert bills
    assert looking.faults == []


def address_of(path: str, owner: dict[str, str]) -> str:
    """The address with the ids of the owner's rows; a name that `ROWS` lacks fails."""
    names = ROWS | {name: row for text, other in OTHER_ROWS.items() if text in path for name, row in other.items()}
    address = path.format(**{name: owner[row] for name, row in names.items()}, **OF_ALL)
    is_a2a = path.startswith("/api/a2a/v1/") and any(one in path for one in VERSION_WANTED)
    return f"{address}?A2A-Version=1.0" if is_a2a else address


async def look_at(looking: Looking, address: str) -> bool:
    """Check an answer, and open it; whether it is a file to be saved."""
    visitor = looking.visitor
    answer = await eventually(partial(get, visitor, address), f"{address} is answered")
    headers, body = answer.headers, answer.content
    kind, is_file = headers.get("content-type", ""), "attachment" in headers.get("content-disposition", "")
    if not answer.is_success:
        looking.faults.append(f"{address}: {answer.status_code} {body[:200]!r}")
    is_inert = kind.startswith(PLAIN) or headers.get("x-content-type-options") == "nosniff"
    is_page = not address.startswith("/api/") and "script-src" in headers.get("content-security-policy", "")
    if answer.is_success and not (is_inert and (is_file or is_page or not ACTIVE.search(kind))):
        looking.faults.append(f"{address}: {headers}")
    if kind.startswith("text/csv"):
        looking.faults += [f"{address}: formula {one!r}" for one in find_formulas(body.decode())]
    if kind.startswith("application/x-ndjson"):
        [json.loads(line) for line in body.splitlines()]
    try:
        await looking.open(address)
    except Error as stopped:
        if SAVES not in stopped.message:
            raise
    return is_file


async def get(visitor: Visitor, address: str) -> httpx.Response | None:
    """The answer; None while the downloads before it are under way, which are refused beyond a few at once.

    Playwright's own client refuses the header of a file whose name has all payloads.
    """
    cookies = {one["name"]: one["value"] for one in await visitor.page.context.cookies()}
    async with httpx.AsyncClient(cookies=cookies, follow_redirects=True, timeout=60) as client:
        answer = await client.get(visitor.url + address)
    return None if answer.status_code == 429 else answer
