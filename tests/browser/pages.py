"""Every page in every state worth a look. Screenshots and the checks of all pages read it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
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


Act = Callable[[Page], Awaitable[None]]


async def _nothing(page: Page) -> None:
    """The page as it opens."""


def _see(text: str) -> Act:
    """Wait until a text is shown."""

    async def act(page: Page) -> None:
        await page.get_by_text(text).first.wait_for()

    return act


def _send(button: str, fields: Mapping[str, str], *, shows: str = "", checks: Sequence[str] = ()) -> Act:
    """Check and fill fields of these labels, and press a button, until a text is shown, else an alert.

    A label that begins with `#` is an id.
    """

    async def act(page: Page) -> None:
        for label in checks:
            await page.get_by_label(label).check()
        for label, text in fields.items():
            await (page.locator(label) if label[0] == "#" else page.get_by_label(label)).fill(text)
        await page.get_by_role("button", name=button, exact=True).first.click()
        await (page.get_by_text(shows) if shows else page.get_by_role("alert")).first.wait_for()

    return act


async def _open_settings(page: Page) -> None:
    await page.get_by_text("Rename, archive, share, export, delete").click()
    await page.get_by_text("Delete this thread").click()


async def _ask_in_version_1(page: Page) -> None:
    await page.get_by_role("button", name="Fetch the card").click()
    await page.get_by_label("A2A 1.0", exact=True).check()
    await page.get_by_label("Python SDK").check()
    await page.get_by_role("button", name="Send").click()
    await page.get_by_text("Completed.").wait_for()
    for method in await page.locator("#v1-0 ~ details").all():
        await method.locator("summary").click()


async def _open_delivery(page: Page) -> None:
    await page.locator("#deliveries tbody a.mono").first.click()
    await page.get_by_role("heading", name="Last answer").wait_for()


async def _point_at_a_day(page: Page) -> None:
    await page.locator(".chart").first.locator(".bar").last.hover()


async def _try_call(page: Page) -> None:
    await page.locator("#getQuestions").get_by_text("Try it").click()
    await page.get_by_role("button", name="Send GET").click()
    await page.get_by_text("200 OK").wait_for()


async def _open_notes(page: Page) -> None:
    for note in await page.locator("details").all():
        await note.locator("summary").click()


async def _refuse_card(page: Page) -> None:
    await page.get_by_label("Limited").check()
    await page.get_by_label("Allowed logins").fill("unknown-login")
    await page.click("#card summary")
    await page.fill("#id_skills", "id: sum\nname: Sum up\ntag: text\n\nid: sum\nname: Again")
    await page.fill("#id_output_modes", "pictures")
    await page.click("button[value=save]")
    await page.get_by_text("no user has the login").first.wait_for()


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


async def _report_nothing(page: Page) -> None:
    await page.get_by_label("What was wrong?").fill(" ")
    await page.get_by_role("button", name="Report a problem").click()
    await page.get_by_text("Write what was wrong.").wait_for()


async def _operate(page: Page) -> None:
    await _live(page)
    await page.get_by_role("group", name="Request: Bash").wait_for()


async def _share(page: Page) -> None:
    await _live(page)
    await page.get_by_role("button", name="Share (").click()
    await page.get_by_role("dialog").wait_for()


async def _find(page: Page) -> None:
    await page.get_by_role("button", name="Find", exact=True).click()
    await page.locator("#palette-field").fill("re")
    await page.locator(".palette-head", has_text="Documents").wait_for()


async def _share_answer(page: Page) -> None:
    await _send("Ask", QUESTION, shows="Answered in")(page)
    await page.get_by_role("button", name="Share", exact=True).click()
    await page.get_by_label("Logins").fill("bob, unknown-login")
    await page.locator("#share").get_by_role("button", name="Share", exact=True).click()
    await page.get_by_text("No user has the login").wait_for()


async def _join(page: Page) -> None:
    await INVITE(page)
    await page.goto(await page.get_by_role("textbox", name="The new link").input_value())
    await page.get_by_label("Password").fill("short")
    await page.get_by_label("The same again").fill("short")
    await page.get_by_role("button", name="Set the password").click()
    await page.get_by_role("alert").wait_for()


async def _import_venues(page: Page) -> None:
    rows = "slug,name,priority_rank\nla-brisa,La Brisa,5\n,Nameless,1\nthe-lawn,The Lawn,first\n"
    await page.get_by_label("CSV file").set_input_files(
        {"name": "venues.csv", "mimeType": "text/csv", "buffer": rows.encode()}
    )
    await page.get_by_role("button", name="Import").click()
    await page.get_by_role("heading", name="Nothing was imported").wait_for()


QUESTION = {"Your question": "What is a lifetime in Rust?"}
BAD_VENUE = {"#id_name": "La Brisa", "Slug": "no slug", "Referral fee": "101", "#id_url": "ftp://nowhere"}


ASK_CODE = _send("Go on", {"The code your device shows": "BCDF-GHJK"})
WARN_BADLY = _send("Save", {"Minutes": "0"}, checks=["An agent is offline"])
CONNECT_NAMELESS = _send("Get a token", {"Its name": "…"})
CONNECT = _send("Get a token", {"Its name": "laptop"}, shows="No program has connected")
LOOK_AT_NOTHING = _send("Look at the card", {"Agent card": "ftp://nowhere"})
BREAK_RULES = _send("Save", {"#id_members": "No Name"})
SHOW_SECRET = _send("Show the signing secret", {}, shows="Its signing secret")
ADD_BADLY = _send("Add the venue", BAD_VENUE)
MAKE_KEY = _send("Make a key", {"#id_name": "Concierge app"}, shows="Copy both now", checks=["Pro:", "Booking:"])
MAKE_KEY_BADLY = _send("Make a key", {"Senders": "no name"})
ROTATE = _send("Make a new secret", {}, shows="Copy it now")
INVITE = _send("Make a link", {"Login": "new-colleague"}, shows="Copy it now", checks=["An administrator"])


BAD_GROUP = _send("Create the group", {"#name": "Mine", "Short name": "no slug"})
ACT = _send("Act for this group", {}, shows="for @data-team")
MAKE_LINK = _send("Make a link", {}, shows="Copy it now")


async def _open_link(page: Page) -> None:
    await MAKE_LINK(page)
    await page.goto(await page.get_by_role("textbox", name="The new link").input_value())
    await page.get_by_role("button", name="Join the group").wait_for()


async def _mint(page: Page) -> None:
    await page.get_by_label("New token, for").select_option("jwt")
    await page.get_by_label("Its name").fill("laptop")
    await page.get_by_label("For a program: the only agent").fill("owner/helper")
    await page.get_by_label("Good for how long").fill("1")
    await page.get_by_label("Unit of the time").select_option("hours")
    await page.get_by_role("button", name="Make a token").click()
    await page.get_by_text("Your new token").wait_for()


async def _subscribe(page: Page) -> None:
    await page.locator("input[value='agent.replied']").check()
    await _send("Subscribe", {"URL": "http://127.0.0.1:9/hook"}, shows="Copy it now")(page)


async def _live(page: Page) -> None:
    await page.locator("#link .state.on").wait_for()


@dataclass(frozen=True)
class Listed:
    """One page in one state. `{…}` in the path: a name of the scene. `act` brings the state about.

    `login`: of the visitor who is signed in, if any. `complaint`: what the browser's console says of a page that
    is an error. `like`: the page in this list of the same template, which is checked by `make test` and has all
    elements of this one but the box of a list without rows, which `desk-empty` and `directory-none-of-mine` show;
    this one is checked by `make test-deep`.
    """

    name: str
    path: str
    login: str = ""
    act: Act = _nothing
    complaint: str = ""
    like: str = ""


PAGES = [
    Listed("home", "/"),
    Listed("directory", "/agents"),
    Listed("directory-search", "/agents?q=rust&online=1", "alice", like="directory"),
    Listed("directory-tagged", "/agents?tag=books&sort=use", "asker"),
    Listed("directory-own-view", "/agents", "asker", like="directory-tagged"),
    Listed("directory-none-of-mine", "/agents?mine=1", "alice"),
    Listed("agent", "/agents/{agent}", act=_open_notes, like="agent-mine"),
    Listed("agent-asked", "/agents/{agent}", "alice", _send("Ask", QUESTION, shows="Answered in")),
    Listed("agent-all", "/agents/{all}", "alice", _send("Ask", QUESTION, shows="The agent asks back.")),
    Listed("agent-mine", "/agents/{agent}", "owner", _open_notes),
    Listed("agent-over-budget", "/agents/{spent}", "alice"),
    Listed("agent-offline", "/agents/{offline}", "alice", like="agent-over-budget"),
    Listed("agent-absent", "/agents/unknown/knows", complaint="404"),
    Listed("palette", "/agents", "alice", _find),
    Listed("shares", "/shares", "alice"),
    Listed("shares-received", "/shares", "bob", like="shares"),
    Listed("shares-empty", "/shares", "newcomer", like="shares"),
    Listed("shared", "/shared/{shared}", "bob", _see("Sales by region")),
    Listed("shared-link", "/s/{link}", act=_see("Sales by region"), like="shared"),
    Listed("shared-absent", "/shared/999999", "newcomer", complaint="404"),
    Listed("shared-signed-out", "/shared/999999", complaint="404", like="shared-absent"),
    Listed("shared-link-absent", "/s/0123456789abcdef", complaint="404", like="shared-absent"),
    Listed("share-dialog", "/agents/{agent}", "alice", _share_answer, complaint="400"),
    Listed("ask", "/questions/{ask}", "asker", _report_nothing, complaint="400"),
    Listed("ask-owned", "/questions/{ask}", "owner", _see("Tool: Read")),
    Listed("ask-absent", "/questions/no-such-ask", "asker", complaint="404"),
    Listed("threads", "/questions", "asker"),
    Listed("threads-search", "/questions?q=migrate", "asker", like="threads"),
    Listed("threads-none", "/questions?q=unheard-of", "asker", like="threads"),
    Listed("threads-empty", "/questions", "newcomer", like="threads"),
    Listed("thread", "/questions/threads/{thread}", "asker"),
    Listed("thread-settings", "/questions/threads/{thread}", "asker", _open_settings, like="thread"),
    Listed("questions", "/questions/all", "asker", _see("A lifetime is how long")),
    Listed("questions-empty", "/questions/all", "newcomer", like="questions"),
    Listed("questions-refused", "/questions/all?day=yesterday", "alice", complaint="400", like="questions"),
    Listed("signin", "/signin", like="signin-refused"),
    Listed("signin-refused", "/signin", act=_send("Sign in", {"Login": "no such login"}), complaint="400"),
    Listed("account", "/account", "alice", like="account-new-token"),
    Listed("account-erase", "/account/erase", "alice"),
    Listed("account-new-token", "/account", "alice", _mint),
    Listed("groups", "/groups", "owner"),
    Listed("groups-refused", "/groups", "newcomer", BAD_GROUP, complaint="400"),
    Listed("group", "/groups/data-team", "owner", MAKE_LINK),
    Listed("group-member", "/groups/data-team", "alice", like="group"),
    Listed("group-empty", "/groups/quiet-team", "owner", like="group"),
    Listed("group-acting", "/groups/data-team", "keeper", ACT),
    Listed("group-erase", "/groups/data-team/erase", "owner"),
    Listed("group-join", "/groups/data-team", "owner", _open_link),
    Listed("group-join-gone", "/groups/join/unknown", "alice", complaint="404"),
    Listed("device", "/device", "alice", like="device-unknown-code"),
    Listed("device-unknown-code", "/device", "alice", ASK_CODE, complaint="400"),
    Listed("device-known-code", "/device", "alice", _allow_device),
    Listed("consent", CONSENT, "alice"),
    Listed("docs", "/docs"),
    Listed("docs-search", "/docs?q=daily%20budget"),
    Listed("docs-nothing-found", "/docs?q=unheard-of", like="docs-search"),
    Listed("docs-page", "/docs/errors"),
    Listed("docs-large-page", "/docs/rest", like="docs-page"),
    Listed("docs-guide", "/docs/connect-an-agent", like="docs-page"),
    Listed("api", "/docs/api"),
    Listed("api-section", "/docs/api/questions", "alice", _try_call),
    Listed("api-sockets", "/docs/api/sockets"),
    Listed("api-a2a", "/docs/api/a2a", like="api-sockets"),
    Listed("api-gateway", "/docs/api/a2a-v1"),
    Listed("reference", "/demos/a2a/?agent={agent}", like="reference-version-1"),
    Listed("reference-version-1", "/demos/a2a/?agent={agent}", "alice", _ask_in_version_1),
    Listed("desk-empty", "/desk", "newcomer"),
    Listed("desk", "/desk", "owner"),
    Listed("desk-shared", "/desk", "bob", like="desk"),
    Listed("desk-alerts", "/desk/alerts", "owner", like="desk-alerts-refused"),
    Listed("desk-alerts-refused", "/desk/alerts", "alice", WARN_BADLY, complaint="400"),
    Listed("desk-bulk", "/desk/bulk?action=halt&agent={id}&agent={unasked}", "owner"),
    Listed("desk-bulk-nothing", "/desk/bulk", "newcomer", like="desk-bulk"),
    Listed("desk-connect", "/desk/connect", "alice", like="desk-connect-refused"),
    Listed("desk-connect-refused", "/desk/connect", "alice", CONNECT_NAMELESS, complaint="400"),
    Listed("desk-connecting", "/desk/connect", "alice", CONNECT),
    Listed("desk-publish", "/desk/publish?session={quiet}", "owner"),
    Listed("desk-publish-nothing", "/desk/publish", "newcomer", like="desk-publish"),
    Listed("desk-remote", "/desk/remote", "alice", like="desk-remote-refused"),
    Listed("desk-remote-refused", "/desk/remote", "alice", LOOK_AT_NOTHING, complaint="400"),
    Listed("desk-server", "/desk/agents/{remote}/remote", "remy"),
    Listed("desk-agent", "/desk/agents/{id}", "owner", like="desk-agent-preview"),
    Listed("desk-agent-preview", "/desk/agents/{id}", "owner", _send("Preview the description", {}, shows="own")),
    Listed("desk-agent-card-refused", "/desk/agents/{id}", "owner", _refuse_card, complaint="400"),
    Listed("desk-published", "/desk/agents/{id}/published", "owner"),
    Listed("desk-delete", "/desk/agents/{id}/delete", "owner"),
    Listed("desk-costs", "/desk/costs?by=caller", "owner"),
    Listed("desk-costs-none", "/desk/costs", "newcomer", like="desk-costs"),
    Listed("desk-failures", "/desk/failures", "owner"),
    Listed("desk-failures-none", "/desk/failures", "newcomer", like="desk-failures"),
    Listed("desk-failure", "/desk/failures/{failure}", "owner"),
    Listed("desk-ratings", "/desk/agents/{id}/ratings", "owner"),
    Listed("desk-evaluations", "/desk/evaluations", "owner"),
    Listed("desk-evaluations-none", "/desk/evaluations", "newcomer", like="desk-evaluations"),
    Listed("desk-evaluation", "/desk/evaluations/{set}", "owner"),
    Listed("desk-evaluation-runs", "/desk/evaluations/{set}?by=run", "owner", like="desk-evaluation"),
    Listed("desk-evaluation-settings", "/desk/evaluations/{set}/settings", "owner"),
    Listed("desk-question-new", "/desk/evaluations/{set}/questions/new", "owner", like="desk-question"),
    Listed("desk-question", "/desk/evaluations/{set}/questions/{saved}", "owner"),
    Listed("desk-evaluation-run", "/desk/evaluations/{set}/runs/{evaluation}", "owner"),
    Listed("desk-audit", "/desk/agents/{id}/audit", "owner", like="desk-audit-month"),
    Listed("desk-audit-month", "/desk/agents/{id}/audit?days=30", "owner", _point_at_a_day),
    Listed("desk-audit-unasked", "/desk/agents/{unasked}/audit", "owner", like="desk-audit-month"),
    Listed("team", "/desk/team", "captain"),
    Listed("team-empty", "/desk/team", "newcomer", like="team"),
    Listed("team-proposal", "/desk/team/proposals/{proposal}", "captain"),
    Listed("team-rules", "/desk/team/rules", "captain", like="team-rules-refused"),
    Listed("team-rules-refused", "/desk/team/rules", "captain", BREAK_RULES, complaint="400"),
    Listed("team-agent", "/desk/team/agents/alpha", "captain"),
    Listed("network", "/desk/network", "host"),
    Listed("network-empty", "/desk/network", "newcomer", like="network"),
    Listed("network-venues", "/desk/network/venues", "host"),
    Listed("network-venues-empty", "/desk/network/venues", "newcomer", like="network-venues"),
    Listed("network-venue", "/desk/network/venues/{network_venue}", "host", SHOW_SECRET),
    Listed("network-venue-refused", "/desk/network/venues/new", "host", ADD_BADLY, complaint="400"),
    Listed("network-import", "/desk/network/venues/import", "host", _import_venues, complaint="400"),
    Listed("network-keys", "/desk/network/keys?ended=1", "host"),
    Listed("network-keys-empty", "/desk/network/keys", "newcomer", like="network-key-refused"),
    Listed("network-key-new", "/desk/network/keys", "bob", MAKE_KEY),
    Listed("network-key-refused", "/desk/network/keys", "newcomer", MAKE_KEY_BADLY, complaint="400"),
    Listed("network-key", "/desk/network/keys/{network_key}", "host", ROTATE),
    Listed("network-bookings", "/desk/network/bookings", "host"),
    Listed("network-bookings-empty", "/desk/network/bookings", "newcomer", like="network-bookings"),
    Listed("network-booking", "/desk/network/bookings/{network_booking}", "host"),
    Listed("network-revenue", "/desk/network/revenue", "host"),
    Listed("network-revenue-empty", "/desk/network/revenue", "newcomer", like="network-revenue"),
    Listed("network-log", "/desk/network/log", "host"),
    Listed("network-log-empty", "/desk/network/log", "newcomer", like="network-log"),
    Listed("network-rules", "/desk/network/rules", "host", _send("Save", {"Days to keep": "0"}), complaint="400"),
    Listed("sign-envelope", "/demos/agnt/", act=_see("Signed 99 bytes")),
    Listed("operator", "/desk/sessions/{session}", "owner", _operate),
    Listed("operator-viewer", "/desk/sessions/{session}", "alice", _operate, like="operator"),
    Listed("operator-quiet", "/desk/sessions/{quiet}", "owner", _live, like="operator"),
    Listed("operator-share", "/desk/sessions/{session}", "owner", _share),
    Listed("operator-delete", "/desk/sessions/{session}/delete", "owner"),
    Listed("webhooks-empty", "/webhooks", "newcomer", like="webhooks-refused"),
    Listed("webhooks", "/webhooks", "owner"),
    Listed("webhooks-refused", "/webhooks", "alice", _send("Subscribe", {"URL": "no address"}), complaint="400"),
    Listed("webhook-new", "/webhooks", "alice", _subscribe),
    Listed("webhook", "/webhooks/{webhook}", "owner"),
    Listed("webhook-delivery", "/webhooks/{webhook}", "owner", _open_delivery),
    Listed("health", "/health", "chief"),
    Listed("files", "/files", "alice"),
    Listed("limits", "/limits", "chief"),
    Listed("staff-account", "/staff/accounts/owner", "chief"),
    Listed("invitations", "/invitations", "chief", INVITE),
    Listed("join", "/invitations", "chief", _join, complaint="400"),
    Listed("not-found", "/nothing-here", complaint="404"),
]
