"""What the APIs answer about hostile rows, opened as a page: nothing runs, and no cell begins a formula."""

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Error

from tests.attempts import Attempts
from tests.browser.chrome import IN_BROWSER
from tests.browser.looking import Looking, Rows
from tests.native.formulas import find_formulas
from tests.tenancy.routes import served

pytestmark = [*IN_BROWSER, pytest.mark.attack, pytest.mark.deep, pytest.mark.timeout(300)]

ACTIVE = re.compile(r"html|xml|svg|javascript|pdf|multipart|rfc822")  # types that a browser would show or run
PLAIN = ("application/json", "text/plain")  # browsers never take these for HTML
SAVES = "Download is starting"  # what the browser says of an answer that it does not show
ENDLESS = ("/api/a2a/live", "/api/a2a/history", ":subscribe")
LEADS_AWAY = ("/auth/oauth/", "/auth/oidc/", "/auth/spa/")
# The name of a parameter, and of an owner's row.
ROWS = {
    "public_id": "session", "agent_id": "agent", "set_id": "set", "run_id": "evaluation", "failure_id": "failure",
    "webhook_id": "told", "delivery_id": "delivery", "proposal_id": "proposal", "venue_id": "network_venue",
    "booking_id": "network_booking", "ask_id": "ask", "chat_id": "ask", "group_slug": "group", "file_id": "file",
    "letter_id": "letter", "slug": "slug", "owner": "login", "account": "login",
}  # fmt: skip
FILES = ("/desk/agents/{agent}/audit.csv", "/desk/costs.csv", "/desk/network/venues.csv", "/llms.txt")


async def test_no_answer_does_anything(looking: Looking, rows: Rows, attempts: Attempts) -> None:
    owner = dict(rows.owners[0])
    owner["login"], _, owner["slug"] = owner["handle"].partition("/")
    rows_by_name = {name: owner[row] for name, row in ROWS.items()} | {"given": "v1", "metric": "events.total"}
    addresses = [path.format(**owner) for path in FILES]
    for path in sorted(one.removeprefix("GET ") for one in served() if one.startswith("GET ")):
        if set(re.findall(r"{(\w+)}", path)) <= set(rows_by_name) and not any(one in path for one in LEADS_AWAY):
            addresses += [] if path.endswith(ENDLESS) else [path.format(**rows_by_name)]
    files = 0
    exports = [f"/api/v1/admin/log/export?form={form}" for form in ("csv", "jsonl")]
    of_staff = [*(one for one in addresses if "/admin/" in one), *exports]
    chief = rows.hub.mint("chief", "session", admin=True)
    for session, wanted in ((owner["token_of_session"], addresses), (chief, of_staff)):
        await looking.visitor.be(session)
        for address in wanted:
            files += await look_at(looking, address)
    looking.visitor.expected = ["status of 401"]
    looking.end()
    bills = [one.read_text() for one in Path(rows.hub.home.env["DATA_DIR"]).glob("invoices/*/*.csv")]
    looking.faults += [f"a bill: formula {one!r}" for bill in bills for one in find_formulas(bill)]
    attempts.count("bills with hostile names of customers", len(bills))
    attempts.count("addresses of APIs about hostile rows, opened as a page", looking.pages + files)
    assert files > len(FILES)
    assert bills
    assert looking.faults == []


async def look_at(looking: Looking, address: str) -> bool:
    """Check an answer, and open it; whether it is a file to be saved."""
    visitor = looking.visitor
    answer = await visitor.page.request.get(visitor.url + address)
    headers, body = answer.headers, await answer.body()
    kind, is_file = headers.get("content-type", ""), "attachment" in headers.get("content-disposition", "")
    if answer.status >= 500:
        looking.faults.append(f"{address}: {answer.status}")
    is_inert = kind.startswith(PLAIN) or headers.get("x-content-type-options") == "nosniff"
    if answer.ok and not (is_inert and (is_file or not ACTIVE.search(kind))):
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
