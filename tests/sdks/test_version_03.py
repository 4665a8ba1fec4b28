"""Features that A2A 0.3 has besides, or lacks, by its official clients."""

import asyncio

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from lab.pictures import PIXEL_BASE64
from tests.sdks.clients import VERSION_03, SdkClient
from tests.sdks.conftest import is_here


async def test_a_plain_reply_is_a_message(hub: HubProcess, alice: str, client_03: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        answered = await client_03.watch(hub.url, agent.handle, alice, "send")
        streamed = await client_03.watch(hub.url, agent.handle, alice, "stream")
    for seen in (answered.one("answer"), streamed.one("event")):
        assert (seen.kind, seen.text) == ("message", "echo: hello")


async def test_a_reply_of_a_word_a_second_outlasts_a_read_timeout(hub: HubProcess, alice: str) -> None:
    """Real speed: 5 s is the clients' own read time-out. All at once, because each takes its time."""
    text = " | ".join(["rest 1 | say a"] * 6)

    async def ask(client: SdkClient) -> str:
        async with online(hub, TaskPeer) as agent:
            run = await client.watch(hub.url, agent.handle, alice, "stream", text=text)
        return run.has_not_raised().one("event").text

    clients = [client for client in VERSION_03 if is_here(client)]
    assert await asyncio.gather(*map(ask, clients)) == ["aaaaaa"] * len(clients)


async def test_an_agent_of_tasks_never_answers_with_a_message(
    hub: HubProcess, alice: str, client_03: SdkClient
) -> None:
    async with online(hub, TaskPeer, agent={"agentStyle": "task-generating"}) as agent:
        answered = await client_03.watch(hub.url, agent.handle, alice, "send")
        streamed = await client_03.watch(hub.url, agent.handle, alice, "stream")
    answer = answered.one("answer")
    assert (answer.kind, answer.state, answer.reply) == ("task", "completed", "echo: hello")
    first, *_, last = streamed.at("event")
    assert (first.kind, last.kind, last.state) == ("task", "status-update", "completed")
    assert last.body["final"] is True


async def test_files_reach_an_agent_whose_card_lists_them(
    hub: HubProcess, alice: str, client_03: SdkClient
) -> None:
    files = [
        {"bytes": PIXEL_BASE64, "mimeType": "image/png", "name": "a.png"},
        {"uri": "https://files.example/b.png", "mimeType": "image/png"},
    ]
    async with online(hub, TaskPeer, agent={"defaultInputModes": ["text/plain", "image/*"]}) as agent:
        run = await client_03.watch(hub.url, agent.handle, alice, "send", text="note hm | say seen", files=files)
        [prompt] = agent.prompts
    assert prompt["parts"][1:] == [
        {"raw": PIXEL_BASE64, "mediaType": "image/png", "filename": "a.png"},
        {"url": "https://files.example/b.png", "mediaType": "image/png"},
    ]
    answer = run.has_not_raised().one("answer")
    assert (answer.state, answer.reply.partition("\n")[0]) == ("completed", "seen")
    assert len(answer.body["history"][0]["parts"]) == 3


async def test_push_addresses_are_not_taken(hub: HubProcess, alice: str, client_03: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        run = await client_03.watch(hub.url, agent.handle, alice, "push", hook="https://8.8.8.8/hook")
    [sight] = run.sights
    assert sight.step == "raised"
