"""Every page in every state worth a look. Screenshots and the checks of all pages read it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from playwright.async_api import Page

CONSENT = "/consent?" + urlencode(
    {
        "redirect_uri": "http://localhost:5173/back",
        "state": "some-state-of-the-app",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
        "app_name": "Notebook",
        "machine_id": "laptop",
    }
)


async def _nothing(page: Page) -> None:
    """The page as it opens."""


async def _ask(page: Page) -> None:
    await page.get_by_role("button", name="Fetch the card").click()
    await page.get_by_label("Your question").fill("What is a lifetime in Rust?")
    await page.get_by_label("curl").check()
    await page.get_by_role("button", name="Send").click()
    await page.get_by_text("Completed.").wait_for()


async def _ask_in_version_1(page: Page) -> None:
    await page.get_by_role("button", name="Fetch the card").click()
    await page.get_by_label("A2A 1.0", exact=True).check()
    await page.get_by_label("Python SDK").check()
    await page.get_by_role("button", name="Send").click()
    await page.get_by_text("Completed.").wait_for()
    for method in await page.locator("#v1-0 ~ details").all():
        await method.locator("summary").click()


async def _err(page: Page) -> None:
    await page.get_by_label("Make a mistake").select_option("params")
    await page.get_by_role("button", name="Send").click()
    await page.get_by_text("Not taken.").wait_for()


async def _ask_agent(page: Page) -> None:
    await page.get_by_label("Your question").fill("What is a lifetime in Rust?")
    await page.get_by_label("Your question").press("Control+Enter")
    await page.get_by_text("Answered in").wait_for()


async def _ask_for_all(page: Page) -> None:
    await page.get_by_label("Your question").fill("What sold best?")
    await page.get_by_label("Your question").press("Enter")
    await page.get_by_text("The agent asks back.").wait_for()


async def _open_delivery(page: Page) -> None:
    await page.locator("#deliveries tbody a.mono").first.click()
    await page.get_by_role("heading", name="Last answer").wait_for()


async def _read_replies(page: Page) -> None:
    await page.get_by_text("A lifetime is how long").wait_for()


async def _point_at_a_day(page: Page) -> None:
    await page.locator(".chart").first.locator(".bar").last.hover()


async def _try_call(page: Page) -> None:
    await page.locator("#getQuestions").get_by_text("Try it").click()
    await page.get_by_role("button", name="Send GET").click()
    await page.get_by_text("200 OK").wait_for()


async def _open_notes(page: Page) -> None:
    for note in await page.locator("details").all():
        await note.locator("summary").click()


async def _look_at_nothing(page: Page) -> None:
    await page.get_by_label("Agent card").fill("ftp://nowhere")
    await page.get_by_role("button", name="Look at the card").click()
    await page.get_by_text("want a URL that begins").wait_for()


async def _mint(page: Page) -> None:
    await page.get_by_label("New token, for").select_option("jwt")
    await page.get_by_label("Its name").fill("laptop")
    await page.get_by_label("For a program: the only agent").fill("owner/helper")
    await page.get_by_label("Good for how long").fill("1")
    await page.get_by_label("Unit of the time").select_option("hours")
    await page.get_by_role("button", name="Make a token").click()
    await page.get_by_text("Your new token").wait_for()


async def _connect(page: Page) -> None:
    await page.get_by_label("Its name").fill("laptop")
    await page.get_by_role("button", name="Get a token").click()
    await page.get_by_text("Nothing has connected").wait_for()


async def _connect_nameless(page: Page) -> None:
    await page.get_by_label("Its name").fill("…")
    await page.get_by_role("button", name="Get a token").click()
    await page.get_by_role("alert").wait_for()


async def _preview(page: Page) -> None:
    await page.get_by_role("button", name="Preview").click()
    await page.locator("#preview").wait_for()


async def _warn_badly(page: Page) -> None:
    await page.get_by_label("An agent is offline").check()
    await page.get_by_label("Minutes").fill("0")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("alert").first.wait_for()


async def _refuse(page: Page) -> None:
    await page.get_by_label("Limited").check()
    await page.get_by_label("Allowed logins").fill("unknown-login")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("no user has the login").first.wait_for()


async def _refuse_card(page: Page) -> None:
    await page.get_by_label("Limited").check()
    await page.get_by_label("Allowed logins").fill("unknown-login")
    await page.click("#card summary")
    await page.fill("#id_skills", "id: sum\nname: Sum up\ntag: text\n\nid: sum\nname: Again")
    await page.fill("#id_output_modes", "pictures")
    await page.click("button[value=save]")
    await page.get_by_text("no user has the login").first.wait_for()


async def _no_such_login(page: Page) -> None:
    await page.get_by_label("Login").fill("no such login")
    await page.get_by_label("Login").press("Enter")
    await page.get_by_role("alert").wait_for()


async def _no_such_code(page: Page) -> None:
    await page.get_by_label("The code your device shows").fill("BCDF-GHJK")
    await page.get_by_role("button", name="Go on").click()
    await page.get_by_role("alert").wait_for()


async def _allow_device(page: Page) -> None:
    code = await page.evaluate(
        """() => fetch("/api/v1/auth/device/code", {
          method: "POST",
          headers: {"Content-Type": "application/json"},
          body: JSON.stringify({app_name: "clawbridge-cli", machine_id: "laptop"}),
        }).then((answer) => answer.json()).then((body) => body.user_code)"""
    )
    await page.get_by_label("The code your device shows").fill(code)
    await page.get_by_role("button", name="Go on").click()
    await page.get_by_role("button", name="Allow", exact=True).wait_for()


async def _live(page: Page) -> None:
    await page.locator("#link .state.on").wait_for()


async def _operate(page: Page) -> None:
    await _live(page)
    await page.get_by_role("group", name="Request: Bash").wait_for()


async def _share(page: Page) -> None:
    await _live(page)
    await page.get_by_role("button", name="Share (").click()
    await page.get_by_role("dialog").wait_for()


async def _subscribe(page: Page) -> None:
    await page.get_by_label("URL").fill("http://127.0.0.1:9/hook")
    await page.locator("input[value='agent.replied']").check()
    await page.get_by_role("button", name="Subscribe").click()
    await page.get_by_text("Copy it now").wait_for()


async def _subscribe_badly(page: Page) -> None:
    await page.get_by_label("URL").fill("no address")
    await page.get_by_role("button", name="Subscribe").click()
    await page.get_by_role("alert").first.wait_for()


async def _invite(page: Page) -> None:
    await page.get_by_label("Login").fill("new-colleague")
    await page.get_by_label("An administrator").check()
    await page.get_by_role("button", name="Make a link").click()
    await page.get_by_text("Copy it now").wait_for()


async def _join(page: Page) -> None:
    await _invite(page)
    await page.goto(await page.get_by_role("textbox", name="The new link").input_value())
    await page.get_by_label("Password").fill("short")
    await page.get_by_label("The same again").fill("short")
    await page.get_by_role("button", name="Set the password").click()
    await page.get_by_role("alert").wait_for()


async def _break_rules(page: Page) -> None:
    await page.get_by_label("Voters", exact=True).fill("No Name")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("alert").first.wait_for()


async def _add_venue_badly(page: Page) -> None:
    await page.get_by_label("Name", exact=True).fill("La Brisa")
    await page.get_by_label("Slug").fill("no slug")
    await page.get_by_label("Referral fee").fill("101")
    await page.get_by_label("URL", exact=True).fill("ftp://nowhere")
    await page.get_by_role("button", name="Add the venue").click()
    await page.get_by_role("alert").first.wait_for()


async def _import_venues(page: Page) -> None:
    rows = "slug,name,priority_rank\nla-brisa,La Brisa,5\n,Nameless,1\nthe-lawn,The Lawn,first\n"
    await page.get_by_label("CSV file").set_input_files(
        {"name": "venues.csv", "mimeType": "text/csv", "buffer": rows.encode()}
    )
    await page.get_by_role("button", name="Import").click()
    await page.get_by_role("heading", name="Nothing was imported").wait_for()


async def _make_key(page: Page) -> None:
    await page.get_by_label("Name", exact=True).fill("Concierge app")
    await page.get_by_label("Pro:").check()
    await page.get_by_label("Booking:").check()
    await page.get_by_role("button", name="Make a key").click()
    await page.get_by_text("Copy both now").wait_for()


async def _make_key_badly(page: Page) -> None:
    await page.get_by_label("Senders").fill("no name")
    await page.get_by_role("button", name="Make a key").click()
    await page.get_by_role("alert").first.wait_for()


async def _rotate_secret(page: Page) -> None:
    await page.get_by_role("button", name="Make a new secret").click()
    await page.get_by_text("Copy it now").wait_for()


async def _show_venue_secret(page: Page) -> None:
    await page.get_by_role("button", name="Show the signing secret").click()
    await page.get_by_role("heading", name="Its signing secret").wait_for()


async def _signed(page: Page) -> None:
    await page.get_by_text("Signed 99 bytes").wait_for()


async def _keep_no_log(page: Page) -> None:
    await page.get_by_label("Days to keep").fill("0")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("alert").first.wait_for()


@dataclass(frozen=True)
class Listed:
    """One page in one state. `{…}` in the path: a name of the scene. `act` brings the state about.

    `login`: of the visitor who is signed in, if any. `complaint`: what the browser's console says of a page that
    is an error. `like`: the page in this list of the same template, which has all the elements of this one and is
    checked by `make test`; this one is checked by `make test-deep`.
    """

    name: str
    path: str
    login: str = ""
    act: Callable[[Page], Awaitable[None]] = _nothing
    complaint: str = ""
    like: str = ""


PAGES = [
    Listed("home", "/"),
    Listed("home-signed-in", "/", "alice", like="home"),
    Listed("directory", "/agents"),
    Listed("directory-search", "/agents?q=rust&online=1", "alice", like="directory"),
    Listed("directory-no-match", "/agents?q=unknown", like="directory-none-of-mine"),
    Listed("directory-none-of-mine", "/agents?mine=1", "alice"),
    Listed("agent", "/agents/{agent}", act=_open_notes),
    Listed("agent-asked", "/agents/{agent}", "alice", _ask_agent),
    Listed("agent-all", "/agents/{all}", "alice", _ask_for_all),
    Listed("agent-mine", "/agents/{agent}", "owner"),
    Listed("agent-busy", "/agents/{busy}", "alice", like="agent-asked"),
    Listed("agent-over-budget", "/agents/{spent}", "alice"),
    Listed("agent-offline", "/agents/{offline}", "alice", like="agent-over-budget"),
    Listed("agent-absent", "/agents/unknown/knows", complaint="404"),
    Listed("questions", "/questions", "asker", _read_replies),
    Listed("questions-none-found", "/questions?q=unknown&state=failed", "asker", like="questions-empty"),
    Listed("questions-empty", "/questions", "newcomer"),
    Listed("questions-refused", "/questions?day=yesterday", "alice", complaint="400", like="questions"),
    Listed("signin", "/signin", like="signin-refused"),
    Listed("signin-refused", "/signin", act=_no_such_login, complaint="400"),
    Listed("account", "/account", "alice", like="account-new-token"),
    Listed("account-erase", "/account/erase", "alice"),
    Listed("account-new-token", "/account", "alice", _mint),
    Listed("device", "/device", "alice", like="device-unknown-code"),
    Listed("device-unknown-code", "/device", "alice", _no_such_code, complaint="400"),
    Listed("device-known-code", "/device", "alice", _allow_device),
    Listed("consent", CONSENT, "alice"),
    Listed("consent-command-line", CONSENT.replace("app_name=Notebook&", ""), "alice", like="consent"),
    Listed("docs", "/docs"),
    Listed("docs-search", "/docs?q=daily%20budget", like="docs-nothing-found"),
    Listed("docs-nothing-found", "/docs?q=unheard-of"),
    Listed("docs-page", "/docs/rest"),
    Listed("docs-guide", "/docs/connect-an-agent", like="docs-page"),
    Listed("api", "/docs/api"),
    Listed("api-section", "/docs/api/questions", "alice", _try_call),
    Listed("api-sockets", "/docs/api/sockets"),
    Listed("api-a2a", "/docs/api/a2a", like="api-sockets"),
    Listed("api-gateway", "/docs/api/a2a-v1"),
    Listed("reference", "/demos/a2a/?agent={agent}", like="reference-version-1"),
    Listed("reference-asked", "/demos/a2a/?agent={agent}", "alice", _ask, like="reference-version-1"),
    Listed("reference-version-1", "/demos/a2a/?agent={agent}", "alice", _ask_in_version_1),
    Listed(
        "reference-mistake",
        "/demos/a2a/?agent={agent}",
        "alice",
        _err,
        complaint="400",
        like="reference-version-1",
    ),
    Listed("desk-empty", "/desk", "newcomer"),
    Listed("desk", "/desk", "owner"),
    Listed("desk-shared", "/desk", "bob", like="desk"),
    Listed("desk-alerts", "/desk/alerts", "owner"),
    Listed("desk-alerts-refused", "/desk/alerts", "alice", _warn_badly, complaint="400"),
    Listed("desk-bulk", "/desk/bulk?action=halt&agent={id}&agent={unasked}", "owner"),
    Listed("desk-bulk-nothing", "/desk/bulk", "newcomer"),
    Listed("desk-connect", "/desk/connect", "alice", like="desk-connect-refused"),
    Listed("desk-connect-refused", "/desk/connect", "alice", _connect_nameless, complaint="400"),
    Listed("desk-connecting", "/desk/connect", "alice", _connect),
    Listed("desk-publish", "/desk/publish?session={quiet}", "owner"),
    Listed("desk-publish-nothing", "/desk/publish", "newcomer"),
    Listed("desk-remote", "/desk/remote", "alice", like="desk-remote-refused"),
    Listed("desk-remote-refused", "/desk/remote", "alice", _look_at_nothing, complaint="400"),
    Listed("desk-server", "/desk/agents/{remote}/remote", "remy"),
    Listed("desk-agent", "/desk/agents/{id}", "owner", like="desk-agent-preview"),
    Listed("desk-agent-preview", "/desk/agents/{id}", "owner", _preview),
    Listed(
        "desk-agent-refused",
        "/desk/agents/{id}",
        "owner",
        _refuse,
        complaint="400",
        like="desk-agent-card-refused",
    ),
    Listed("desk-agent-card-refused", "/desk/agents/{id}", "owner", _refuse_card, complaint="400"),
    Listed("desk-published", "/desk/agents/{id}/published", "owner"),
    Listed("desk-delete", "/desk/agents/{id}/delete", "owner"),
    Listed("desk-costs", "/desk/costs?by=caller", "owner"),
    Listed("desk-costs-none", "/desk/costs", "newcomer"),
    Listed("desk-audit", "/desk/agents/{id}/audit", "owner", like="desk-audit-month"),
    Listed("desk-audit-month", "/desk/agents/{id}/audit?days=30", "owner", _point_at_a_day),
    Listed("desk-audit-unasked", "/desk/agents/{unasked}/audit", "owner"),
    Listed("team", "/desk/team", "captain"),
    Listed("team-empty", "/desk/team", "newcomer"),
    Listed("team-proposal", "/desk/team/proposals/{proposal}", "captain"),
    Listed("team-rules", "/desk/team/rules", "captain", like="team-rules-refused"),
    Listed("team-rules-refused", "/desk/team/rules", "captain", _break_rules, complaint="400"),
    Listed("team-agent", "/desk/team/agents/alpha", "captain"),
    Listed("network", "/desk/network", "host"),
    Listed("network-empty", "/desk/network", "newcomer"),
    Listed("network-venues", "/desk/network/venues", "host"),
    Listed("network-venues-none-found", "/desk/network/venues?q=unknown", "host", like="network-venues-empty"),
    Listed("network-venues-empty", "/desk/network/venues", "newcomer"),
    Listed("network-venue", "/desk/network/venues/{network_venue}", "host", _show_venue_secret),
    Listed("network-venue-refused", "/desk/network/venues/new", "host", _add_venue_badly, complaint="400"),
    Listed("network-import", "/desk/network/venues/import", "host", _import_venues, complaint="400"),
    Listed("network-keys", "/desk/network/keys?ended=1", "host"),
    Listed("network-keys-empty", "/desk/network/keys", "newcomer", like="network-key-refused"),
    Listed("network-key-new", "/desk/network/keys", "bob", _make_key),
    Listed("network-key-refused", "/desk/network/keys", "newcomer", _make_key_badly, complaint="400"),
    Listed("network-key", "/desk/network/keys/{network_key}", "host", _rotate_secret),
    Listed("network-bookings", "/desk/network/bookings", "host"),
    Listed("network-bookings-empty", "/desk/network/bookings", "newcomer"),
    Listed("network-booking", "/desk/network/bookings/{network_booking}", "host"),
    Listed("network-revenue", "/desk/network/revenue", "host"),
    Listed("network-revenue-empty", "/desk/network/revenue", "newcomer"),
    Listed("network-log", "/desk/network/log", "host"),
    Listed("network-log-empty", "/desk/network/log", "newcomer"),
    Listed("network-rules", "/desk/network/rules", "host", _keep_no_log, complaint="400"),
    Listed("sign-envelope", "/demos/agnt/", act=_signed),
    Listed("operator", "/desk/sessions/{session}", "owner", _operate),
    Listed("operator-viewer", "/desk/sessions/{session}", "alice", _operate),
    Listed("operator-quiet", "/desk/sessions/{quiet}", "owner", _live, like="operator"),
    Listed("operator-share", "/desk/sessions/{session}", "owner", _share),
    Listed("operator-delete", "/desk/sessions/{session}/delete", "owner"),
    Listed("webhooks-empty", "/webhooks", "newcomer", like="webhooks-refused"),
    Listed("webhooks", "/webhooks", "owner"),
    Listed("webhooks-refused", "/webhooks", "alice", _subscribe_badly, complaint="400"),
    Listed("webhook-new", "/webhooks", "alice", _subscribe),
    Listed("webhook", "/webhooks/{webhook}", "owner"),
    Listed("webhook-delivery", "/webhooks/{webhook}", "owner", _open_delivery),
    Listed("health", "/health", "chief"),
    Listed("limits", "/limits", "chief"),
    Listed("invitations", "/invitations", "chief", _invite),
    Listed("join", "/invitations", "chief", _join, complaint="400"),
    Listed("not-found", "/nothing-here", complaint="404"),
]
