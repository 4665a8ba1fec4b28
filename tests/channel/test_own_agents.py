"""Agents of one owner are no strangers to each other: no isolation, and a cycle only if both would wait."""

import pytest

from lab.hub_process import HubProcess
from tests.channel.agents import Agent, Echoing, agent, asking, route_name

TOLD = "(tell mode — no reply)"


def cycle(asked: Agent, *, by_handle: bool = False) -> str:
    name = asked.handle if by_handle else route_name("owner", asked)
    return f"error: the question came through @{name} already, answer without asking it again"


async def check_asks(asker: Agent, asked: Agent) -> None:
    """The asker asks the other agent, which answers."""
    before = len(asked.prompts)
    sent = await asker.request("route", peer=route_name("owner", asked), prompt="and you?", mode="ask")
    prompt = await asked.heard("prompt", count=before + 1)
    await asked.reply(prompt["chatId"], "fine")
    assert (await asker.answer_to("route", sent))["reply"] == "fine"


@pytest.mark.parametrize("mode", ["ask", "tell"])
async def test_an_agent_may_ask_its_asker_at_once_when_that_does_not_wait(hub: HubProcess, mode: str) -> None:
    async with agent(hub, "owner") as one, agent(hub, "owner", at=-1) as two:
        sent = await one.request("dispatch", handle=two.handle, prompt="how are you?", mode=mode)
        prompt = await two.heard("prompt")
        if mode == "ask":
            await two.reply(prompt["chatId"], "well")
        assert (await one.answer_to("route", sent))["reply"] == ("well" if mode == "ask" else TOLD)
        await check_asks(two, one)


async def test_an_agent_tells_its_asker_how_far_it_is_and_does_not_make_it_wait(hub: HubProcess) -> None:
    async with agent(hub, "owner") as one, agent(hub, "owner", at=-1) as two, agent(hub, "owner") as three:
        sent = await one.request("route", peer=route_name("owner", two), prompt="do it", mode="ask")
        prompt = await two.heard("prompt")
        assert await two.route(route_name("owner", one), "half of it is done", mode="tell") == TOLD
        assert (await one.heard("prompt"))["text"] == "half of it is done"
        assert await two.route(route_name("owner", one), "shall I?") == cycle(one)
        onward = await two.request("dispatch", handle=three.handle, prompt="a part of it", mode="ask")
        part = await three.heard("prompt")
        assert await three.route(route_name("owner", one), "shall I?") == cycle(one)
        assert await three.route(route_name("owner", one), "begun", mode="tell") == TOLD
        await three.reply(part["chatId"], "the part")
        assert (await two.answer_to("route", onward))["reply"] == "the part"
        await two.reply(prompt["chatId"], "done")
        assert (await one.answer_to("route", sent))["reply"] == "done"


@pytest.mark.parametrize("mode", ["ask", "tell"])
async def test_what_is_asked_for_a_stranger_never_comes_back(hub: HubProcess, mode: str) -> None:
    composable = {"isolated": False}
    async with (
        agent(hub, "owner", fields=composable) as one,
        agent(hub, "owner", at=-1, fields=composable) as two,
        asking(hub, "alice", one),
    ):
        sent = await one.request("dispatch", handle=two.handle, prompt="do it", mode=mode)
        prompt = await two.heard("prompt")
        for back in ("ask", "tell"):
            assert await two.dispatch(one.handle, mode=back) == cycle(one, by_handle=True)
        if mode == "ask":
            await two.reply(prompt["chatId"], "done")
            assert (await one.answer_to("route", sent))["reply"] == "done"
            assert await two.dispatch(one.handle, mode="tell") == cycle(one, by_handle=True)


@pytest.mark.parametrize("by_agent", [True, False])
async def test_what_its_owner_asks_isolates_no_agent_over_a_new_connection_either(
    hub: HubProcess, by_agent: bool
) -> None:
    async with (
        agent(hub, "owner") as mine,
        agent(hub, "owner", Echoing, at=-1) as other,
        agent(hub, "owner") as asker,
    ):
        if by_agent:
            await asker.request("dispatch", handle=mine.handle, prompt="do it", mode="ask")
            await mine.heard("prompt")
            await check_reaches(hub, mine, other)
        else:
            async with asking(hub, "owner", mine):
                await check_reaches(hub, mine, other)


async def check_reaches(hub: HubProcess, mine: Agent, other: Agent) -> None:
    name = route_name("owner", other)
    for _ in range(2):
        assert name in await mine.peers()
        assert await mine.route(name) == "echo: hello?"
        assert await mine.probe([name]) == {name: "echo: hello?"}
        mine.socket.transport.abort()
        await mine.closed.wait()
        await mine.connect(hub.urls[-1])
