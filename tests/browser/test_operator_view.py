"""One session as its operators see it: what happens, who is there, what they may do; and what a lost line does."""

import re

from playwright.async_api import expect

from lab.agents import Chunker, Echo, Held, online
from lab.callers import bearer, web
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.sessions import api, ids, is_live, line, prompt, request_permission, share, tail, watch
from tests.browser.vectors import VECTORS
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


async def test_two_operators_see_each_other_and_the_agent(
    visitor: Visitor, other: Visitor, site: HubProcess
) -> None:
    async with online(site, Echo) as echo:
        await share(site, echo, "bob", "prompter")
        await watch(visitor, echo, "owner")
        await watch(other, echo, "bob")
        await expect(visitor.page.locator("#attached")).to_have_text(re.compile("@bob.*@owner", re.DOTALL))
        await prompt(visitor, "hello there")
        for one in (visitor, other):
            await expect(line(one, "hello there", ".prompt")).to_contain_text("@owner")
            await expect(line(one, "echo: hello there", ".reply")).to_be_visible()
        await other.page.get_by_label("Message to the other operators").fill("is it ready, @owner?")
        await other.page.get_by_role("button", name="Send to the operators").click()
        await expect(line(visitor, "is it ready, @owner?", ".op")).to_contain_text("@bob")
        await expect(visitor.page.get_by_label("Prompt for the agent")).to_have_value("")
        await tail(echo, "PreToolUse", tool_name="Read", tool_input={"file": "a.py"})
        note = line(other, "Tool call", ".note")
        await note.locator("summary").click()
        await expect(note.locator("pre")).to_contain_text('"file": "a.py"')
        await other.page.close()
        await expect(visitor.page.locator("#attached")).to_have_text("@owner")
        await visitor.check_calm()
    await expect(visitor.page.locator("#channel")).to_have_text("agent offline")
    await visitor.check_calm()


async def test_a_reply_grows_and_is_then_one_line(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Held) as agent:
        await watch(visitor, agent, "owner")
        await prompt(visitor, "tell me")
        asked = await agent.heard("prompt")
        growing = visitor.page.locator("#growing .prose")
        for piece, so_far in (("A **lifetime** ", "A lifetime"), ("is long.", "A lifetime is long.")):
            await agent.chunk(asked["chatId"], piece)
            await expect(growing).to_have_text(so_far)
            await expect(growing.locator("strong")).to_have_text("lifetime")
        await agent.chunk(asked["chatId"], "", done=True)
        answer = line(visitor, "A lifetime is long.", ".reply")
        await expect(answer.locator("strong")).to_have_text("lifetime")
        await expect(visitor.page.locator("#growing li")).to_have_count(0)
        await visitor.check_calm()


async def test_the_first_decision_stands(visitor: Visitor, other: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await share(site, echo, "bob", "approver")
        await watch(visitor, echo, "owner")
        await watch(other, echo, "bob")
        await request_permission(echo, "r1")
        for one in (visitor, other):
            await expect(one.page.locator("#permission-count")).to_have_text("1")
            await expect(one.page.get_by_role("group", name="Request: Bash")).to_contain_text("rm -r build")
        assert (await other.page.title()).startswith("(1) ")
        await visitor.check_calm()
        # Both at once: one wins, both see who.
        await visitor.page.evaluate("document.querySelector('#waiting .danger').click()")
        await other.page.evaluate("document.querySelector('#waiting button')?.click()")  # it may be decided by now
        decided = (await echo.heard("permission_response"))["decision"]
        words = {"deny": "denied by @owner", "allow": "allowed by @bob"}[decided]
        for one in (visitor, other):
            await expect(line(one, "Bash", ".permission")).to_contain_text(words)
            await expect(one.page.locator("#waiting button")).to_have_count(0)
            await one.check_calm()
        assert len([frame for frame in echo.frames if frame["type"] == "permission_response"]) == 1


async def test_one_decides_by_keyboard_and_goes_on_to_the_next(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await request_permission(echo, "r1", tool="Write")
        await watch(visitor, echo, "owner")
        await expect(visitor.page.get_by_role("group", name="Request: Write")).to_be_visible()
        await request_permission(echo, "r2", tool="Delete")
        second = visitor.page.get_by_role("group", name="Request: Delete")
        await visitor.page.get_by_role("group", name="Request: Write").get_by_role("button", name="Allow").focus()
        await second.wait_for()
        await visitor.page.keyboard.press("a")
        assert (await echo.heard("permission_response"))["decision"] == "allow"
        await expect(second.get_by_role("button", name="Allow")).to_be_focused()
        await visitor.page.keyboard.press("d")
        answer = await echo.heard("permission_response", count=2)
        assert (answer["requestId"], answer["decision"]) == ("r2", "deny")
        await expect(visitor.page.locator("#transcript-head")).to_be_focused()
        await visitor.check_calm()


async def test_a_share_that_changes_changes_the_page(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await share(site, echo, "bob", "prompter")
        await watch(visitor, echo, "bob")
        await share(site, echo, "bob", "viewer")
        await prompt(visitor, "may I?")
        await expect(visitor.page.get_by_text("you are its viewer")).to_be_visible()
        await is_live(visitor)
        await api(site, "owner", "DELETE", f"/sessions/{echo.session_id}/shares/bob")
        await expect(visitor.page.locator("#link")).to_contain_text("ended")
        seen = await visitor.seen()  # a hint takes the place of the prompt's form, so what is below it moves
        assert (seen["pwned"], seen["blocked"]) == ([], [])
        assert all("404" in one for one in visitor.complaints), visitor.complaints


async def test_many_lines_come_once_each_and_older_ones_above(visitor: Visitor, site: HubProcess) -> None:
    page = visitor.page
    async with online(site, Echo) as echo:
        await watch(visitor, echo, "owner")
        await prompt(visitor, "*where* is this?")
        answer = line(visitor, "echo: where is this?", ".reply")
        await answer.get_by_role("link", name="its question").click()
        (link,) = re.findall(r"/desk/.*#turn-\d+$", page.url)
        for last in (29, 59, 89, 119):  # the page shows the newest 50 alone if more come between two of its looks
            for number in range(last - 29, last + 1):
                await tail(echo, "Notification", message=f"note {number}.")
            await expect(line(visitor, f"note {last}.")).to_be_visible()
        found = await ids(visitor)
        assert len(found) == len(set(found)) == 123
        assert await page.evaluate(IS_AT_END)
        await visitor.check_calm()
        await visitor.open(f"/desk/sessions/{echo.session_id}")
        await expect(line(visitor, "note 119.")).to_be_visible()
        for count in (50, 100, 123):
            await expect(page.locator("#rows > li")).to_have_count(count)
            if count < 123:
                await page.get_by_role("link", name="Older").click()
        await expect(page.get_by_text("This is the beginning.")).to_be_attached()
        assert await ids(visitor) == found
        await expect(answer.locator("em")).to_have_text("where")
        await page.goto("about:blank")
        await page.goto(visitor.url + link)
        await page.get_by_text("An earlier part of the transcript.").wait_for()
        await expect(line(visitor, "*where* is this?", ".prompt:has(:target)")).to_be_in_viewport()
        await expect(answer.locator("em")).to_have_text("where")
        await page.get_by_role("link", name="To the newest part").click()
        await is_live(visitor)
        await expect(line(visitor, "note 119.")).to_be_in_viewport()
        await visitor.check_calm()


IS_AT_END = "document.querySelector('.operator-main').getBoundingClientRect().bottom <= innerHeight + 5"


async def test_files_come_and_go(visitor: Visitor, other: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await share(site, echo, "bob", "viewer")
        await watch(visitor, echo, "owner")
        await watch(other, echo, "bob")
        hostile = f"{VECTORS[11]}.txt".replace("/", "")
        file = {"name": hostile, "mimeType": "text/html", "buffer": b"<script>pwned(1)</script>"}
        await visitor.page.get_by_label("Upload a file").set_input_files([file])
        await visitor.page.get_by_role("button", name="Upload", exact=True).click()
        for one in (visitor, other):
            await expect(one.page.locator("#files")).to_contain_text("pwned")
            await expect(line(one, "uploaded", ".note")).to_be_visible()
        assert await other.page.locator("#files button").count() == 0
        async with other.page.expect_download() as download:
            await other.page.locator("#files a").click()
        assert (await (await download.value).path()).read_bytes() == file["buffer"]
        await visitor.check()
        for name in ("Delete", "Really?"):
            await visitor.page.locator("#files").get_by_text(name).click()
        for one in (visitor, other):
            await expect(one.page.locator("#files")).to_contain_text("No files.")
            await one.check_calm()


async def test_the_page_comes_back_after_a_restart_and_repeats_nothing(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await watch(visitor, echo, "owner")
        await prompt(visitor, "before")
        await expect(line(visitor, "echo: before")).to_be_visible()
        before = await ids(visitor)
        site.terminate()
        await site.exit_code()
        try:
            await expect(visitor.page.locator("#link")).to_contain_text("connection lost, trying again in")
        finally:
            site.serve(0)
        await echo.connect()
        await is_live(visitor)
        await prompt(visitor, "after")
        await expect(line(visitor, "echo: after")).to_be_visible()
        found = await ids(visitor)
        assert found[: len(before)] == before
        assert len(found) == len(set(found))
        visitor.expected = ["WebSocket connection", "ERR_CONNECTION_REFUSED"]
        await visitor.check_calm()


async def test_a_sign_out_elsewhere_ends_it_for_good(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Echo) as echo:
        await watch(visitor, echo, "owner")
        (cookie,) = [one for one in await visitor.page.context.cookies() if one["name"] == "cw_session"]
        await api_by_cookie(site, cookie["value"])
        await expect(visitor.page.locator("#link")).to_contain_text("ended")
        await expect(visitor.page.get_by_role("link", name="Sign in again")).to_be_visible()
        visitor.expected = ["404 (Not Found)"]  # a request for rows that was on its way
        await visitor.check_calm()


async def api_by_cookie(site: HubProcess, token: str) -> None:
    """Revoke the session itself, as the account page of another browser would."""
    async with web(site.url, headers=bearer(token)) as client:
        assert (await client.post("/api/v1/auth/logout")).is_success


MOVED = """() => new Promise((done) => {
  const found = [];
  new PerformanceObserver((list) => found.push(...list.getEntries().flatMap(({sources}) => sources)))
    .observe({type: "layout-shift", buffered: true});
  const show = ({node, previousRect, currentRect}) =>
    `${node?.outerHTML?.slice(0, 150) ?? "a node that is gone"}: ${JSON.stringify([previousRect, currentRect])}`;
  setTimeout(() => done(found.map(show)), 200);
})"""


async def test_what_comes_moves_nothing_that_is_there(visitor: Visitor, site: HubProcess) -> None:
    """Also right after the operator typed, which `check_calm` does not count: a slow page moves later."""
    async with online(site, Chunker, pieces=["so it ", "is"]) as agent:
        await watch(visitor, agent, "owner")
        page = visitor.page
        for number in range(2):
            await tail(agent, "PreToolUse", tool_name="Read", tool_input={"file": f"{number}.py"})
            await request_permission(agent, f"r{number}", tool=f"Bash {'with a long name ' * 10}")
            await prompt(visitor, f"question {number}.")
            await page.get_by_label("Message to the other operators").fill(f"note {number}.")
            await page.get_by_role("button", name="Send to the operators").click()
            await expect(page.locator("#rows > .reply")).to_have_count(number + 1)
            await line(visitor, f"note {number}.", ".op").wait_for()
            await request_permission(agent, f"s{number}", tool="Write")
            await expect(page.locator("#permission-count")).to_have_text("2")
            await page.get_by_role("group", name="Request: Bash").locator(".danger").click()
            await expect(page.locator("#permission-count")).to_have_text("1")
            await page.get_by_role("group", name="Request: Write").locator(".danger").click()
            await expect(page.locator("#rows > .permission", has_text="denied")).to_have_count(2 * number + 2)
            await expect(page.locator("#permission-count")).to_have_text("0")
        assert await page.evaluate(MOVED) == []
