"""The official clients at one process of a hub, the agent at another.

`make test` shows what these clients see on one process, and in `processes/test_crossing.py` that a caller sees the
same when the agent is at another.
"""

import pytest

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from tests.sdks.clients import VERSION_03, VERSION_1, SdkClient
from tests.sdks.conftest import ready

PYTHON_BY_RPC, _, _, JS_BY_HTTP = VERSION_1

pytestmark = [pytest.mark.slow, pytest.mark.distributed, pytest.mark.deep]


@pytest.fixture(params=[PYTHON_BY_RPC, JS_BY_HTTP, *VERSION_03], ids=str)
def client(request: pytest.FixtureRequest) -> SdkClient:
    """Each client once."""
    return ready(request.param)


@pytest.fixture
def hub(two_process_hub: HubProcess) -> HubProcess:
    """Two processes on PostgreSQL and Redis."""
    return two_process_hub


async def test_a_stream_crosses_over(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer, at=1) as agent:
        text = "note reading | say a lifetime | say  is a region"
        run = await client.watch(hub.url, agent.handle, alice, "stream", text=text)
    events = run.has_not_raised().at("event")
    whole = ["a lifetime is a region"] if client.is_version_1 else []  # docs/adr/0167
    pieces = [event.reply for event in events if event.kind == "artifact-update" and event.reply]
    assert pieces == ["a lifetime", " is a region", *whole]
    assert events[-1].state == "completed"


async def test_a_caller_that_lost_its_stream_follows_on(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer, at=1) as agent:
        text = "note reading | hold | say ferris"
        async with client.run(hub.url, agent.handle, alice, "subscribe", text=text) as run:
            snapshot = await run.saw("again")
            agent.release.set()
            await run.end()
    assert (snapshot.kind, snapshot.text) == ("task", "reading")
    whole = ["ferris"] if client.is_version_1 else []  # docs/adr/0167
    assert [event.reply for event in run.at("again") if event.reply] == ["ferris", *whole]
    assert run.at("again")[-1].state == "completed"


async def test_a_caller_calls_it_off(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer, at=1) as agent:
        run = await client.watch(hub.url, agent.handle, alice, "cancel", text="note reading | wait")
        await agent.heard("cancel")
    assert run.one("canceled").state == run.at("event")[-1].state == "canceled"


async def test_an_agent_asks_back_and_goes_on(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer, at=1) as agent:
        scenario = {"text": "ask which one?", "more": "the second"}
        run = await client.watch(hub.url, agent.handle, alice, "follow_up", **scenario)
    question, answer = run.at("answer")
    assert (question.state, question.text) == ("input-required", "which one?")
    assert (answer.task_id, answer.state, answer.reply) == (question.task_id, "completed", "you said: the second")
