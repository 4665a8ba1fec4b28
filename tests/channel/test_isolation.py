"""Isolated agents reach no other agent until their turn is over; composable ones reach what their caller
reaches.
"""

import pytest

from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import Agent, Echoing, agent, asking, events_of, hook, route_name
from tests.operators.operator import prompt
from tests.operators.rows import share

ISOLATED = "error: this agent is isolated: it answers from its own context and reaches no other session meanwhile"


async def check_isolated(mine: Agent, other: Agent) -> None:
    """Every request is refused, no tool call hangs, and no other agent got anything."""
    before = len(other.prompts)
    errors = sum(1 for one in mine.frames if one["type"] == "error")
    assert await mine.peers() == []
    assert await mine.route(route_name("owner", other)) == ISOLATED
    assert await mine.route(route_name("owner", other), mode="tell") == ISOLATED
    assert await mine.dispatch(other.handle) == ISOLATED
    assert await mine.probe(None) == {}
    assert await mine.probe([route_name("owner", other)]) == {}
    await mine.errors("isolated", count=errors + 3)
    assert len(other.prompts) == before


async def check_free(mine: Agent, other: Agent) -> None:
    """Check that the agent works for its owner again."""
    assert await mine.route(route_name("owner", other)) == "echo: hello?"


async def free_at_last(mine: Agent, other: Agent) -> bool:
    return await mine.route(route_name("owner", other)) == "echo: hello?"


async def test_after_its_reply_it_stays_isolated_until_the_stop(hub: HubProcess) -> None:
    async with agent(hub, "owner") as mine, agent(hub, "owner", Echoing, at=-1) as other:
        async with asking(hub, "alice", mine) as prompt:
            assert (await hook(hub, "owner", mine, "PreToolUse", at=-1)).status_code == 202
            await mine.reply(prompt["chatId"], "here you are")
            await check_isolated(mine, other)
        await check_isolated(mine, other)
        await hook(hub, "owner", mine, "Stop", at=-1)
        await eventually(lambda: free_at_last(mine, other), "the stop ends it")


async def test_without_hooks_it_stays_isolated_for_a_moment_after_its_reply(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner") as mine, agent(hub, "owner", Echoing) as other:
        async with asking(hub, "alice", mine) as prompt:
            await mine.reply(prompt["chatId"], "here you are")
            await check_isolated(mine, other)
        await eventually(lambda: free_at_last(mine, other), "the moment passes")


@pytest.mark.parametrize("by", ["frame", "hook"])
async def test_a_forged_stop_frees_nothing_while_its_caller_waits(hub: HubProcess, by: str) -> None:
    async with (
        agent(hub, "owner") as mine,
        agent(hub, "owner", Echoing, at=-1) as other,
        asking(hub, "alice", mine) as prompt,
    ):
        if by == "frame":
            await mine.stop()
        else:
            assert (await hook(hub, "owner", mine, "Stop", at=-1)).status_code == 202
        await check_isolated(mine, other)
        assert (await mine.agents())["callerLogin"] == "alice"  # it may read the directory
        await mine.reply(prompt["chatId"], "done")
        await check_isolated(mine, other)
        await mine.stop()
        await check_free(mine, other)


async def test_two_questions_at_once_isolate_until_both_are_over(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with (
        agent(hub, "owner") as mine,
        agent(hub, "owner", Echoing) as other,
        asking(hub, "alice", mine) as first,
        asking(hub, "alice", mine) as second,
    ):
        await mine.reply(first["chatId"], "one")
        await mine.stop()
        await check_isolated(mine, other)
        await mine.reply(second["chatId"], "two")
        await check_isolated(mine, other)
        await mine.stop()
        await check_free(mine, other)


async def test_another_socket_does_not_free_it(hub: HubProcess) -> None:
    async with agent(hub, "owner") as mine, agent(hub, "owner", Echoing, at=-1) as other:
        async with asking(hub, "alice", mine):
            session_id = mine.session_id or ""
            for spelled in (session_id, session_id.upper(), f"urn:uuid:{session_id}"):
                mine.socket.transport.abort()
                await mine.closed.wait()
                mine.session_id = spelled
                await mine.connect(hub.urls[-1])
                await check_isolated(mine, other)
        await hook(hub, "owner", mine, "Stop")
        await eventually(lambda: free_at_last(mine, other), "the stop ends it")


async def test_a_composable_agent_reaches_what_its_caller_reaches_and_nothing_of_its_owner(
    embedded_hub: HubProcess,
) -> None:
    hub = embedded_hub
    async with (
        agent(hub, "owner", fields={"isolated": False}) as mine,
        agent(hub, "owner", Echoing, publishes=False) as owners,
        agent(hub, "gina", Echoing, at=-1, publishes=False) as callers,
        agent(hub, "bob", Echoing, publishes=False) as strangers,
    ):
        names = [route_name("owner", owners), route_name("gina", callers), route_name("bob", strangers)]
        denied = [f"error: there is no @{name} that may be asked" for name in names]
        assert [await mine.route(name) for name in names] == ["echo: hello?", denied[1], denied[2]]
        async with asking(hub, "gina", mine) as prompt:
            assert await mine.peers() == [names[1]]
            assert [await mine.route(name) for name in names] == [denied[0], "echo: hello?", denied[2]]
            assert callers.prompts[-1]["askerUser"] == "gina"
            assert await mine.probe(None) == {names[1]: "echo: hello?"}
            assert await mine.probe(names) == dict(zip(names, [denied[0], "echo: hello?", denied[2]], strict=True))
            unknown = f"error: there is no {owners.routing_name} that may be asked"
            assert await mine.route(owners.routing_name) == unknown
            await mine.reply(prompt["chatId"], "done")
            assert await mine.peers() == [names[1]]
        await mine.stop()
        assert names[0] in await mine.peers()


async def test_a_turn_that_is_not_over_when_another_caller_asks_isolates(embedded_hub: HubProcess) -> None:
    """The hub cannot know on whose behalf the agent asks."""
    hub = embedded_hub
    async with (
        agent(hub, "owner", fields={"isolated": False}) as mine,
        agent(hub, "alice", Echoing, publishes=False) as callers,
    ):
        await hook(hub, "owner", mine, "PreToolUse")
        async with asking(hub, "alice", mine) as prompt:
            assert await mine.route(route_name("alice", callers)) == "echo: hello?"
            await mine.reply(prompt["chatId"], "done")
        async with asking(hub, "bob", mine):
            assert await mine.peers() == []
            assert await mine.route(route_name("alice", callers)) == ISOLATED


@pytest.mark.parametrize("by", ["frame", "hook"])
async def test_the_end_of_the_owners_turn_frees_nothing_for_what_was_told_meanwhile(
    embedded_hub: HubProcess, by: str
) -> None:
    """The program queues what it is told while its owner types: that turn's end is not the end of this one."""
    hub = embedded_hub
    async with (
        agent(hub, "owner", publishes=False) as mine,
        agent(hub, "owner", Echoing, at=-1, publishes=False) as owners,
    ):
        share(hub, mine.session_id, gina="prompter")
        if by == "frame":
            await mine.send(type="tail_event", eventType="UserPromptSubmit", payload={})
        else:
            assert (await hook(hub, "owner", mine, "UserPromptSubmit")).status_code == 202
        assert route_name("owner", owners) in await mine.peers()
        told = await prompt(hub, hub.mint("gina", "session"), mine.session_id, "use what is the owner's")
        assert told.status_code == 200, told.text
        await mine.heard("prompt")
        await mine.stop()
        assert route_name("owner", owners) not in await mine.peers()
        await mine.reply(told.json()["chatId"], "no")
        await mine.stop()
        assert route_name("owner", owners) in await mine.peers()


async def test_a_reply_that_the_end_of_the_turn_overtook_is_in_the_transcript(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner", publishes=False) as mine:
        for number in (1, 2):  # whole, and in pieces
            told = await prompt(hub, hub.mint("owner", "session"), mine.session_id, "answer me")
            chat_id = told.json()["chatId"]
            await mine.heard("prompt", count=number)
            await mine.stop()
            await mine.peers()
            if number == 1:
                await mine.reply(chat_id, "here it is")
            else:
                await mine.chunk(chat_id, "here ")
                await mine.chunk(chat_id, "it is", done=True)

        async def are_kept() -> bool:
            replies = [payload for _, type_, payload in events_of(hub, mine) if type_ == "reply"]
            return [one["text"] for one in replies] == ["here it is"] * 2

        await eventually(are_kept, "the late replies are kept")
        assert all(frame["type"] != "error" for frame in mine.frames)
