"""The page of one agent in a browser: asking, following, and each state with what to do about it."""

import asyncio

from playwright.async_api import expect

from lab.agents import Chunker, Echo, Held, TaskPeer, online
from lab.callers import bearer, send, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.browser.chrome import IN_BROWSER
from tests.browser.conversation import ask, last, reply, said, text_in
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


HALVES = "say first half, | hold | say second half"  # the steps of a `TaskPeer`


async def seen(visitor: Visitor, words: str) -> None:
    """Come back to the page, which looks at once, until its advice says so."""

    async def looked() -> bool:
        await visitor.page.evaluate("dispatchEvent(new Event('focus'))")
        return words in await visitor.page.locator("#advice").inner_text()

    await eventually(looked, words)


async def may_ask(visitor: Visitor) -> bool:
    return await visitor.page.get_by_role("button", name="Ask", exact=True).is_enabled()


async def see_no_more_asking(visitor: Visitor) -> None:
    """Wait until the page has read that the visitor may not ask, which follows the answer."""
    await expect(visitor.page.get_by_role("button", name="Ask", exact=True)).to_be_disabled()


async def test_asking_by_keyboard_shows_the_answer_as_it_comes(visitor: Visitor, site: HubProcess) -> None:
    fields = {
        "description": "# What I know\n\n*Tea*, and [more](https://example.org).",
        "claudeMd": "Be brief.\n" * 900,
        "personalizationPrompt": "Speak softly.",
        "suggestedPrompts": [HALVES, "long " * 80],
    }
    async with online(site, TaskPeer, agent=fields) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await visitor.page.get_by_role("button", name=HALVES).press("Enter")
        assert await visitor.page.get_by_label("Your question").input_value() == HALVES
        await visitor.page.keyboard.press("Enter")
        await last(visitor).get_by_text("first half,", exact=True).wait_for()
        await said(visitor, "The agent works on it")
        await visitor.check_calm()
        agent.release.set()
        await said(visitor, "Answered in")
        assert await reply(visitor) == "first half,second half"
        await visitor.page.get_by_role("button", name="Copy the answer").click()
        assert await visitor.page.evaluate("navigator.clipboard.readText()") == "first half,second half"
        for note in ("Its instructions", "How it is told to speak"):
            await visitor.page.get_by_text(note).click()
        await visitor.page.get_by_text("These are its first 6000 characters").wait_for()
        await visitor.check_calm()


async def test_an_answer_that_is_slow_to_draw_is_all_there_when_it_is_said_to_be(
    visitor: Visitor, site: HubProcess
) -> None:
    async with online(site, Chunker, pieces=["**slow** *words* " * 500, "and the end"]) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await ask(visitor, "something long")
        await said(visitor, "Answered in")
        assert (await reply(visitor)).endswith("and the end")


async def test_one_may_stop_following_and_follow_again(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, TaskPeer) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await ask(visitor, HALVES)
        await last(visitor).get_by_text("first half,", exact=True).wait_for()
        assert not await visitor.page.get_by_role("button", name="Follow again").is_visible()
        await visitor.page.get_by_role("button", name="Stop following").click()
        await said(visitor, "Stopped following.")
        assert not await visitor.page.get_by_role("button", name="Stop following").is_visible()
        await visitor.check_calm()
        await visitor.page.get_by_role("button", name="Follow again").click()
        await visitor.page.get_by_role("button", name="Stop following").wait_for()
        agent.release.set()
        await said(visitor, "Answered in")
        assert await reply(visitor) == "first half,second half"
        assert not await visitor.page.get_by_role("button", name="Follow again").is_visible()
    assert len(agent.prompts) == 1


async def test_offline_it_says_so_to_visitors_and_how_to_come_back_to_its_owner(
    visitor: Visitor, other: Visitor, site: HubProcess
) -> None:
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await other.sign_in("owner", then=f"/agents/{agent.handle}")
        assert await may_ask(visitor)
        await agent.leave()
        for person, words in ((visitor, "last seen"), (other, "Start its program again")):
            await seen(person, words)
            assert await person.page.locator("#state").inner_text() == "offline"
            assert not await may_ask(person)
            await person.check_calm()
        await other.page.get_by_role("heading", name="It is yours").wait_for()
        await agent.connect()
        await seen(visitor, "online and free")
        assert await may_ask(visitor)


async def test_busy_it_may_be_tried_and_the_refusal_is_explained(visitor: Visitor, site: HubProcess) -> None:
    async with online(site, Held) as agent:
        asking = asyncio.create_task(send(site.url, agent.handle, "me first", site.mint("bob", "session")))
        await agent.heard("prompt")
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await said(visitor, "another caller")
        await ask(visitor, "me too")
        await said(visitor, "Refused.")
        assert await text_in(visitor, "failure") == ""
        explained = await text_in(visitor, "explained")
        assert explained.startswith("The agent was answering another caller. It answers one caller at a time.")
        await visitor.check_calm()
        agent.release.set()
        await asking
        await seen(visitor, "online and free")
        await visitor.page.get_by_role("button", name="Try again").click()
        await said(visitor, "Answered in")
        assert await reply(visitor) == "echo: me too"
        assert await visitor.page.locator(".turn").count() == 1


async def test_who_was_signed_out_meanwhile_is_told_to_sign_in(visitor: Visitor, site: HubProcess) -> None:
    visitor.expected = ["401"]
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await visitor.page.context.clear_cookies()
        await ask(visitor, "who am I?")
        await said(visitor, "Not asked.")
        await said(visitor, "Sign in to ask it")
        assert "Sign in again" in await text_in(visitor, "explained")
        await visitor.check_calm()


async def test_an_agent_that_is_unpublished_meanwhile_is_gone(visitor: Visitor, site: HubProcess) -> None:
    visitor.expected = ["404"]
    async with online(site, Echo) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        async with web(site.url, headers=bearer(site.mint("owner", "session"))) as owner:
            await owner.patch(f"/api/v1/agents/{agent.agent['id']}", json={"status": "draft"})
        await seen(visitor, "no longer here")
        await see_no_more_asking(visitor)
        await visitor.check_calm()
        await visitor.open(f"/agents/{agent.handle}")
        await visitor.page.get_by_role("heading", name="No such agent").wait_for()
        await visitor.check_calm()
