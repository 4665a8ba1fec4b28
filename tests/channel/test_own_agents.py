"""Agents of one owner are no strangers to each other: no isolation, and a cycle only if both would wait."""

from lab.hub_process import HubProcess
from tests.channel.agents import Agent, Echoing, agent, asking, route_name

TOLD = "(tell mode — no reply)"


def cycle(asked: Agent, *, by_handle: bool = False) -> str:
    name = asked.handle if by_handle else route_name("owner", asked)
    return f"error: the question came through @{name} already, answer without asking it again"


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


async def test_what_is_asked_for_a_stranger_never_comes_back(embedded_hub: HubProcess) -> None:
    hub, composable = embedded_hub, {"isolated": False}
    async with (
        agent(hub, "owner", fields=composable) as one,
        agent(hub, "owner", fields=composable) as two,
        asking(hub, "alice", one),
    ):
        sent = await one.request("dispatch", handle=two.handle, prompt="do it", mode="ask")
        prompt = await two.heard("prompt")
        for back in ("ask", "tell"):
            assert await two.dispatch(one.handle, mode=back) == cycle(one, by_handle=True)
        await two.reply(prompt["chatId"], "done")
        assert (await one.answer_to("route", sent))["reply"] == "done"
        assert await two.dispatch(one.handle, mode="tell") == cycle(one, by_handle=True)


async def test_what_its_owner_asks_isolates_no_agent_over_a_new_connection_either(hub: HubProcess) -> None:
    async with agent(hub, "owner") as mine, agent(hub, "owner", Echoing, at=-1) as other:
        name = route_name("owner", other)
        async with asking(hub, "owner", mine):
            for _ in range(2):
                assert name in await mine.peers()
                assert await mine.route(name) == "echo: hello?"
                assert await mine.probe([name]) == {name: "echo: hello?"}
                mine.socket.transport.abort()
                await mine.closed.wait()
                await mine.connect(hub.urls[-1])
