"""The owner's desk as its owner uses it."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from lab.agents import Echo, Held, online, publish
from lab.callers import reply_text, send
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor, visiting

pytestmark = IN_BROWSER
_logins = itertools.count(1)


@pytest.fixture
def newcomer() -> str:
    """A login that no user has had."""
    return f"newcomer-{next(_logins)}"


@pytest_asyncio.fixture(loop_scope="session")
async def owner(visitor: Visitor) -> AsyncIterator[Visitor]:
    """The owner of the agents of `online`, signed in."""
    await visitor.sign_in("owner")
    yield visitor


async def token_on(page: Page) -> str:
    """The token that the wizard shows."""
    token = await page.get_by_label("The new token", exact=True).input_value()
    assert re.fullmatch("ck_live_[0-9a-f]{32}", token)
    return token


# The wizard, from nothing to an answer.


async def test_a_newcomer_connects_publishes_is_asked_and_finds_the_ask(
    visitor: Visitor, site: HubProcess, newcomer: str
) -> None:
    page = visitor.page
    await visitor.sign_in(newcomer, then="/desk")
    await expect(page.get_by_text("No agents yet")).to_be_visible()
    await visitor.check_calm()
    await page.get_by_role("link", name="Connect an agent").first.click()
    await page.get_by_label("Its name").fill("Word Counter")
    await visitor.check_calm()
    await page.get_by_role("button", name="Get a token").click()
    token = await token_on(page)
    assert f"CLAWBRIDGE_TOKEN={token}" in await page.locator("#environment").inner_text()
    await expect(page.get_by_text("Nothing has connected")).to_be_visible()
    await visitor.check_calm()

    async with Echo(site.url, token, routingName="word-counter"):
        publish = page.get_by_role("link", name="Publish @word-counter")
        await expect(publish).to_be_visible()
        await visitor.check()
        await publish.click()
        assert await page.get_by_label("Name", exact=True).input_value() == "Word counter"
        assert await page.get_by_label("Slug").input_value() == "word-counter"
        await page.get_by_label("Tagline").fill("counts words")
        await visitor.check_calm()
        await page.get_by_role("button", name="Publish").click()
        await expect(page.get_by_text("is there, and open to callers")).to_be_visible()
        await expect(page.get_by_role("link", name="Ask it yourself")).to_be_visible()
        await visitor.check()
        await page.get_by_role("link", name="Back to the desk").click()
        handle = f"{newcomer}/word-counter"
        task = await send(site.url, handle, "how many words?", site.mint("asker", "session"))
        assert reply_text(task) == "echo: how many words?"
        await expect(page.locator("[data-agent] [data-left]")).to_have_text("999")
        await page.get_by_role("link", name=f"Who asked @{handle}").click()
        await expect(page.get_by_text("how many words?", exact=True)).to_be_visible()
        await visitor.check_calm()


async def test_the_wizard_works_without_scripts(browser: Browser, site: HubProcess, newcomer: str) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{site.url}/signin?next=/desk/connect")
    await page.get_by_label("Login").fill(newcomer)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("Its name").fill("quiet")
    await page.get_by_role("button", name="Get a token").click()
    token = await token_on(page)
    again = page.get_by_role("link", name="Check again")
    await again.click()
    await expect(page.get_by_text("Nothing has connected")).to_be_visible()
    async with Echo(site.url, token, routingName="quiet"):
        await again.click()
        await page.get_by_role("link", name="Publish @quiet").click()
        await page.get_by_role("button", name="Publish").click()
        await expect(page.get_by_text(f"@{newcomer}/quiet is there")).to_be_visible()
    await context.close()


async def test_the_wizard_says_when_its_token_was_revoked(
    visitor: Visitor, site: HubProcess, newcomer: str
) -> None:
    visitor.expected = ["404"]
    page = visitor.page
    await visitor.sign_in(newcomer, then="/desk/connect")
    await page.get_by_label("Its name").fill("short-lived")
    await page.get_by_role("button", name="Get a token").click()
    await token_on(page)
    other = await page.context.new_page()
    await other.goto(f"{site.url}/account")
    await other.get_by_role("button", name="Revoke short-lived").click()
    await expect(page.get_by_text("This token was revoked.")).to_be_visible()


# The lists keep themselves up to date.


async def test_the_desk_shows_busy_and_offline_by_itself_and_nothing_moves(
    visitor: Visitor, site: HubProcess, newcomer: str
) -> None:
    async with online(site, Held, owner=newcomer) as held:
        await visitor.sign_in(newcomer)
        await visitor.stop_clock()
        await visitor.open("/desk")
        state = visitor.page.locator("li.agent", has_text=held.handle).locator(".state")
        await expect(state).to_have_text("online")
        asked = send(site.url, held.handle, "wait", site.mint("asker", "session"))
        async with asyncio.TaskGroup() as group:
            group.create_task(asked)
            await visitor.see_later(state, "busy")
            held.release.set()
        await visitor.see_later(state, "online")
    await visitor.see_later(state, "offline")
    await visitor.check_calm()


# Several agents at once.


async def test_chosen_agents_are_unpublished_by_keyboard(
    visitor: Visitor, site: HubProcess, newcomer: str
) -> None:
    page, token = visitor.page, site.mint(newcomer, "session")
    async with Echo(site.url, site.mint(newcomer, "channel"), routingName="one") as agent:
        assert agent.session_id is not None
        await publish(site, token, agent.session_id, "one")
        await visitor.sign_in(newcomer, then="/desk")
        button = page.get_by_role("button", name="Unpublish…")
        await expect(button).to_be_disabled()
        await page.get_by_label(f"Choose @{newcomer}/one").focus()
        await page.keyboard.press("Space")
        await expect(page.get_by_text("1 chosen")).to_be_visible()
        await expect(page.get_by_label("All on this page")).to_be_checked()
        await button.press("Enter")
        await expect(page.get_by_role("heading", name="Unpublish 1 agent?")).to_be_visible()
        await visitor.check_calm()
        await page.get_by_role("button", name="Unpublish 1 agent").press("Enter")
        await expect(page.get_by_role("heading", name="1 agent unpublished")).to_be_visible()
        await visitor.check()
        await page.get_by_role("link", name="Back to the desk").click()
        await expect(page.locator("li.agent").get_by_text("draft", exact=True)).to_be_visible()


# Alerts.


async def test_an_alert_is_switched_on_and_stays_so(visitor: Visitor, site: HubProcess, newcomer: str) -> None:
    page = visitor.page
    await visitor.sign_in(newcomer, then="/desk")
    await page.get_by_role("link", name="Alerts").click()
    await expect(page.get_by_text("No alert is open.")).to_be_visible()
    await page.get_by_label("Its daily budget is nearly used").press("Space")
    await page.get_by_label("Percent of the budget").fill("70")
    await page.get_by_role("button", name="Save").press("Enter")
    await expect(page.get_by_text("Your alerts are saved.")).to_be_visible()
    await expect(page.get_by_label("Its daily budget is nearly used")).to_be_checked()
    await expect(page.get_by_label("Percent of the budget")).to_have_value("70")
    await expect(page.get_by_label("An agent is offline")).not_to_be_checked()
    await visitor.check_calm()


# Forms.


async def test_errors_stand_beside_their_fields(owner: Visitor, site: HubProcess) -> None:
    owner.expected = ["400"]
    page = owner.page
    async with online(site, Echo) as echo:
        await owner.open(f"/desk/agents/{echo.agent['id']}")
        await page.get_by_label("Limited").check()
        await page.get_by_label("Allowed logins").fill("unknown-login")
        await page.get_by_role("button", name="Save").click()
        field = page.get_by_label("Allowed logins")
        assert await field.get_attribute("aria-invalid") == "true"
        described = await field.get_attribute("aria-describedby")
        assert described is not None
        error = page.locator(f"#{described.split()[-1]}")
        await expect(error).to_contain_text("no user has the login unknown-login")
        await owner.check_calm()


async def test_logins_are_asked_for_while_access_is_limited(owner: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await owner.open(f"/desk/agents/{echo.agent['id']}")
        field = owner.page.get_by_label("Allowed logins")
        await expect(field).to_be_hidden()
        await owner.page.get_by_label("Limited").check()
        await expect(field).to_be_visible()
        await owner.check_calm()


async def test_a_description_is_previewed_and_kept_in_the_form(owner: Visitor, site: HubProcess) -> None:
    page = owner.page
    async with online(site, Echo) as echo:
        await owner.open(f"/desk/agents/{echo.agent['id']}")
        await expect(page.get_by_role("button", name="Save")).to_be_in_viewport()
        await page.get_by_label("Description").fill("It *counts*.\n\n- words\n- lines")
        await page.get_by_role("button", name="Preview").click()
        await expect(page.locator("#preview em")).to_have_text("counts")
        assert (
            await page.get_by_label("Description", exact=True).input_value() == "It *counts*.\n\n- words\n- lines"
        )
        await owner.check_calm()


async def test_an_agent_is_unpublished_published_and_deleted(owner: Visitor, site: HubProcess) -> None:
    page = owner.page
    async with online(site, Echo) as echo:
        address = f"/desk/agents/{echo.agent['id']}"
        await owner.open(address)
        await page.get_by_role("button", name="Unpublish").click()
        await expect(page.get_by_text("It is a draft: it cannot be asked yet.")).to_be_visible()
        await owner.open(address)
        await page.get_by_role("button", name="Publish as it is").click()
        await expect(page.get_by_text("and open to callers.")).to_be_visible()
        await owner.open(address)
        await page.get_by_role("link", name="Delete").click()
        await page.get_by_role("button", name="Delete the agent").click()
        await expect(page.get_by_text(f"@{echo.handle} is deleted.")).to_be_visible()
        await expect(page.locator("li.agent", has_text=echo.handle)).to_have_count(0)


# The audit.


async def test_the_audit_of_an_unasked_agent_is_calm(owner: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await owner.open(f"/desk/agents/{echo.agent['id']}/audit")
        await expect(owner.page.get_by_text("No questions in these days")).to_be_visible()
        await owner.check_calm()


async def test_a_caller_is_blocked_from_the_audit(owner: Visitor, site: HubProcess) -> None:
    page = owner.page
    async with online(site, Echo) as echo:
        token = site.mint("pest", "session")
        await send(site.url, echo.handle, "buy this", token)
        await owner.open(f"/desk/agents/{echo.agent['id']}/audit?days=30")
        await page.get_by_role("button", name="Block @pest").click()
        await expect(page.get_by_text("@pest is blocked")).to_be_visible()
        await owner.check()
        task = await send(site.url, echo.handle, "and this", token)
        assert task["status"]["state"] == "FAILED"
        await page.get_by_label("Outcome", exact=True).select_option("denied")
        await page.get_by_label("Asker", exact=True).fill("@pest")
        await page.get_by_role("button", name="Show").click()
        await expect(page.locator(".asks .said")).to_have_text(["and this"])
        await expect(page.locator(".asks")).to_contain_text("blocked")
        await page.get_by_role("button", name="Unblock @pest").click()
        await expect(page.get_by_text("@pest is answered again")).to_be_visible()


async def test_days_and_times_are_the_visitors(browser: Browser, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await send(site.url, echo.handle, "when?", site.mint("asker", "session"))
        async with visiting(browser, site.url, timezone_id="Pacific/Kiritimati") as away:
            await away.sign_in("owner")
            await away.open(f"/desk/agents/{echo.agent['id']}/audit")
            page = away.page
            await expect(page.get_by_text("Days are those of Pacific/Kiritimati")).to_be_visible()
            await expect(page.get_by_text("Times are in Pacific/Kiritimati")).to_be_visible()
            local = """(form) => {
              const format = new Intl.DateTimeFormat("en-GB", {...form, timeZone: "Etc/GMT-14"});
              const is_local = (time) => time.textContent === format.format(new Date(time.dateTime));
              return [...document.querySelectorAll(".asks time, .transcript time")].map(
                (time) => is_local(time) && time.title.endsWith("UTC"));
            }"""
            assert set(await page.evaluate(local, {"dateStyle": "medium", "timeStyle": "medium"})) == {True}
            await away.check_calm()
            await away.open(f"/desk/sessions/{echo.session_id}")
            await expect(page.locator(".state", has_text="live")).to_be_visible()
            await send(site.url, echo.handle, "and now?", site.mint("asker", "session"))
            await expect(page.get_by_text("echo: and now?")).to_be_visible()  # a script added it
            assert set(await page.evaluate(local, {"timeStyle": "medium"})) == {True}
            zone = page.get_by_role("main").get_by_text("Times are in Pacific/Kiritimati")
            await expect(zone).to_be_visible()  # this page has no foot


async def test_the_audit_shows_replies_finds_words_and_leads_to_the_transcript(
    owner: Visitor, site: HubProcess
) -> None:
    async with online(site, Echo) as echo:
        for question in ("what is a lifetime?", "what is a borrow?"):
            await send(site.url, echo.handle, question, site.mint("asker", "session"))
        await owner.open(f"/desk/agents/{echo.agent['id']}/audit?days=30")
        page = owner.page
        days = page.get_by_role("group", name="Asks per day").locator("tbody tr")
        await expect(days).to_have_count(30)
        await expect(days.first.locator("td").first).to_have_text("2")
        await expect(page.locator(".asks .answer .said")).to_have_text(
            ["echo: what is a borrow?", "echo: what is a lifetime?"]
        )
        today = page.locator(".chart").first.locator("g").last
        await expect(today.locator(".values")).to_be_hidden()
        await today.locator(".bar").hover()
        await expect(today.locator(".values")).to_be_visible()
        await expect(today.locator(".values")).to_contain_text(": 2 answered")
        await page.get_by_label("Words of the question").fill("LIFETIME is")
        await page.get_by_role("button", name="Show").click()
        await expect(page.locator(".asks > li")).to_have_count(1)
        await page.get_by_role("link", name="In the transcript").click()
        await expect(page).to_have_url(re.compile(r"/desk/sessions/[^?]+\?turn=(\d+)#turn-\1$"))
        await expect(page.get_by_text("echo: what is a lifetime?")).to_be_visible()
        await owner.check_calm()


async def test_the_csv_is_a_download(owner: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await send(site.url, echo.handle, "=1+1", site.mint("asker", "session"))
        await owner.open(f"/desk/agents/{echo.agent['id']}/audit")
        async with owner.page.expect_download() as coming:
            await owner.page.get_by_role("link", name="Download CSV").click()
        download = await coming.value
        assert download.suggested_filename.endswith("-7-days.csv")
        assert ",'=1+1" in (await download.path()).read_text()
