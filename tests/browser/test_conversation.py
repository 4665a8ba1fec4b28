"""The conversation on an agent's page: everything that an agent sends, answers, cancels, files, and reloading."""

import json
from base64 import b64encode
from urllib.parse import urlsplit

from playwright.async_api import Route

from lab.agents import TaskPeer, online
from lab.callers import Json, send
from lab.hub_process import HubProcess
from lab.pictures import png
from tests.browser.chrome import IN_BROWSER
from tests.browser.conversation import ask, last, reply, said, text_in, turned
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER

SIDE = 700  # of the picture, wider than its place in the conversation
ROWS: list[Json] = [{"city": "Oslo", "days": 3}, {"city": "Rome", "open": True}, {"city": "<b>", "more": {"a": 1}}]
MARKDOWN = [
    "# Re",
    "port\n\n- **one**\n- [two](https://example.org)\n\n```\nmake",
    " run\n```\n|a|b|\n|---|---|\n|1|2|\n",
]
REPORT = " | ".join(
    [
        "note reading the files",
        *(f"say {piece}" for piece in MARKDOWN),
        f"image chart {b64encode(png(SIDE)).decode()}",
        f"data table {json.dumps(ROWS)}",
        'data settings {"depth": {"n": 1}}',
        "raw rows a,b\n1,2\n",
        "more rows the same again",
        "raw page <script>pwned(1)</script>",
        "url elsewhere https://example.org/a",
        "hold",
    ]
)
PLACE_IN_TURN = "(one) => one.getBoundingClientRect().y - one.closest('.turn').getBoundingClientRect().y"
PICTURE_WIDTH = "document.querySelector('dialog img').naturalWidth"


async def test_everything_that_an_agent_sends_is_shown_while_it_comes(visitor: Visitor, site: HubProcess) -> None:
    page = visitor.page
    async with online(site, TaskPeer) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await ask(visitor, REPORT)
        turn = last(visitor)
        stop = turn.get_by_role("button", name="Stop following")
        await stop.wait_for()
        place = await stop.evaluate(PLACE_IN_TURN)
        await turn.get_by_role("link", name="elsewhere").wait_for()
        assert await stop.evaluate(PLACE_IN_TURN) == place
        assert await turn.locator("[data-part=reply] h3").inner_text() == "Report"
        assert await turn.locator("[data-part=reply] strong").inner_text() == "one"
        assert await turn.locator("[data-part=reply] td").all_inner_texts() == ["1", "2"]
        assert await turn.locator("a[href]").evaluate_all("(all) => all.map((one) => one.protocol)") == [
            "https:", "data:", "data:", "data:", "https:"
        ]  # fmt: skip
        heads = turn.locator(".artifact th")
        assert await heads.all_inner_texts() == ["city", "days", "open", "more"]
        assert await turn.locator(".artifact tbody tr").count() == len(ROWS)
        await turn.get_by_text("Data: 1 field").wait_for()
        await turn.get_by_text("1 step").click()
        await turn.locator("li").filter(has_text="reading the files").wait_for()
        both = turn.locator(".artifact").filter(has=page.get_by_role("link", name="rows.txt"))
        await both.get_by_text("the same again", exact=True).wait_for()
        await visitor.check_calm()
        async with page.expect_download() as coming:
            await turn.get_by_role("link", name="rows.txt").click()
        download = await coming.value
        assert (download.suggested_filename, (await download.path()).read_bytes()) == ("rows.txt", b"a,b\n1,2\n")
        await turn.get_by_role("button", name="Image chart.png").click()
        assert await page.evaluate(PICTURE_WIDTH) == SIDE
        await page.get_by_role("button", name="Close").click()
        await turn.get_by_role("button", name="Copy the code").click()
        assert await page.evaluate("navigator.clipboard.readText()") == "make run\n"
        agent.release.set()
        await said(visitor, "Answered in")
        await turn.get_by_role("button", name="Raw text").click()
        assert await reply(visitor) == "".join(MARKDOWN)
        await visitor.check_calm()


async def test_a_polite_refusal_is_no_failure_and_a_failure_is_one(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, TaskPeer) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await ask(visitor, "reject I plan no wars")
        await said(visitor, "Declined.")
        assert await text_in(visitor, "failure") == "I plan no wars"
        assert await visitor.page.locator("[data-part=failure].calm").is_visible()
        await ask(visitor, "say half | fail")
        await turned(visitor, 2, "Failed.")
        assert (await reply(visitor), await text_in(visitor, "failure")) == ("half", "the agent failed")
        assert await last(visitor).locator("[data-part=failure].calm").count() == 0
        assert "It counts in today’s budget." in await text_in(visitor, "explained")
        await visitor.check()


async def test_a_task_of_another_caller_is_not_shown(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, TaskPeer) as agent:
        task = await send(site.url, agent.handle, "a secret", site.mint("bob", "session"))
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}?task={task['id']}")
        await visitor.page.get_by_text("This conversation is not kept any more, or it is not yours.").wait_for()
        assert await visitor.page.locator(".turn").count() == 0
        await ask(visitor, "mine")
        await turned(visitor, 1, "Answered in")
        await visitor.check_calm()
    assert agent.prompts[0]["contextId"] != agent.prompts[1]["contextId"]


async def test_a_question_of_the_agent_is_answered_in_its_conversation(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, TaskPeer) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await ask(visitor, "say so far | ask Which day?")
        await turned(visitor, 1, "The agent asks back.")
        assert (await reply(visitor), await text_in(visitor, "words")) == ("so far", "Which day?")
        await ask(visitor, "Monday")
        await turned(visitor, 2, "Answered in")
        assert await reply(visitor) == "you said: Monday"
        assert len({one["taskId"] for one in agent.prompts}) == 1
        await ask(visitor, "ask Which week?")
        await turned(visitor, 3, "The agent asks back.")
        await visitor.page.get_by_label("This answers what the agent asked").uncheck()
        await ask(visitor, "Something new")
        await turned(visitor, 4, "Answered in")
        assert await reply(visitor) == "echo: Something new"
        assert len({one["taskId"] for one in agent.prompts}) == 3
        assert len({one["contextId"] for one in agent.prompts}) == 1
        await visitor.check_calm()
        await visitor.open(urlsplit(visitor.page.url)._replace(scheme="", netloc="").geturl())
        await turned(visitor, 4, "Answered")
        bubbles = "(all) => all.map((one) => one.textContent.trim())"
        questions = await visitor.page.locator("[data-part=question-text]").evaluate_all(bubbles)
        assert questions == ["say so far | ask Which day?", "Monday", "ask Which week?", "Something new"]
        words = await visitor.page.locator("[data-part=reply]").evaluate_all(bubbles)
        assert words == ["so far", "you said: Monday", "", "echo: Something new"]
        await visitor.page.get_by_role("button", name="Start over").click()
        await ask(visitor, "hello")
        await turned(visitor, 1, "Answered in")
        assert len({one["contextId"] for one in agent.prompts}) == 2


async def test_a_cancel_reaches_the_agent_also_after_a_reload(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, TaskPeer) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await ask(visitor, "say begun | wait")
        await last(visitor).get_by_text("begun", exact=True).wait_for()
        await visitor.page.reload()
        await last(visitor).get_by_text("begun", exact=True).wait_for()
        await visitor.page.get_by_role("button", name="Cancel").click()
        await said(visitor, "Canceled.")
        assert await text_in(visitor, "explained") == "You canceled this. It counts in today’s budget."
        assert await text_in(visitor, "failure") == ""
        await agent.heard("cancel")
        assert not await visitor.page.get_by_role("button", name="Cancel").is_visible()
        await visitor.page.get_by_role("button", name="Edit").click()
        assert await visitor.page.get_by_label("Your question").input_value() == "say begun | wait"
        await visitor.page.get_by_role("button", name="Ask again").wait_for()
        await visitor.check_calm()


async def test_a_permission_request_is_decided_in_the_answer(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, TaskPeer, agent={"callerApprovals": True}) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await ask(visitor, "say begun | hold | say , done")
        prompt = await agent.heard("prompt")
        request: Json = {"requestId": "r1", "tool": "Bash", "inputPreview": "rm -r build"}
        await agent.send(type="permission_request", chatId=prompt["chatId"], **request)
        await said(visitor, "The agent asks back.")
        await visitor.page.get_by_text("rm -r build", exact=True).wait_for()
        assert not await visitor.page.get_by_label("This answers what the agent asked").is_visible()
        await visitor.check()
        await visitor.page.get_by_role("button", name="Approve Bash").click()
        await agent.heard("permission_response")
        agent.release.set()
        await said(visitor, "Answered in")
        assert await reply(visitor) == "begun, done"
        assert await visitor.page.locator(".turn").count() == 1
        await visitor.check_calm()


async def test_a_question_that_was_lost_on_its_way_is_asked_once(visitor: Visitor, site: HubProcess) -> None:
    """The hub has it, and the page does not know: the second request has the key of the first."""
    visitor.expected = ["ERR_FAILED"]
    sent: list[str] = []

    async def lose_the_answer(route: Route) -> None:
        sent.append(route.request.headers["idempotency-key"])
        if len(sent) == 1:
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    async with online(site, TaskPeer) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await visitor.page.route("**/api/a2a/v1/agents/*/*", lose_the_answer)
        await ask(visitor, "only once")
        await said(visitor, "The connection to the hub was lost.")
        await visitor.page.get_by_role("button", name="Try again").click()
        await said(visitor, "Answered in")
        assert await reply(visitor) == "echo: only once"
    assert (len(agent.prompts), len(sent), len(set(sent))) == (1, 2, 1)


async def test_files_go_along_within_what_the_agent_takes(visitor: Visitor, site: HubProcess) -> None:
    drop = """([name, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name));
      const dropped = new DragEvent("drop", {dataTransfer: data, cancelable: true, bubbles: true});
      document.getElementById("ask").dispatchEvent(dropped);
    }"""
    chosen = [
        {"name": "rows.json", "mimeType": "application/json", "buffer": json.dumps(ROWS).encode()},
        {"name": "photo.png", "mimeType": "image/png", "buffer": b"\x89PNG\xff"},
        {"name": "long.txt", "mimeType": "text/plain", "buffer": b"x" * 5000},
    ]
    async with online(site, TaskPeer, agent={"maxBodyBytes": 4096}) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await visitor.page.evaluate(drop, ["notes.txt", "read\nme"])
        await visitor.page.get_by_role("button", name="Remove notes.txt").wait_for()
        await visitor.page.locator("#file").set_input_files(chosen)  # type: ignore[arg-type]
        await visitor.page.get_by_role("button", name="Remove rows.json").wait_for()
        refused = await visitor.page.locator("#ask-error").inner_text()
        assert "photo.png: this agent takes text and JSON" in refused
        assert "long.txt: it has 5.0 KB; this agent takes 4.1 KB of text at most." in refused
        await visitor.check()
        await ask(visitor, "read these")
        await said(visitor, "Answered in")
        await last(visitor).get_by_role("link", name="notes.txt").wait_for()
        await ask(visitor, "y" * 4000)
        await visitor.page.get_by_text("The question with its files has").wait_for()
        await visitor.check_calm()
    [prompt] = agent.prompts
    assert "File notes.txt:\n\nread\nme" in prompt["text"]
    assert "Oslo" in prompt["text"]
