"""The promises of both versions of A2A, by the official clients with their own settings and a token."""

import asyncio
import re

from lab.agents import Slow, TaskPeer, gone, online
from lab.callers import rpc_path
from lab.hub_process import HubProcess
from tests.sdks.clients import CLIENTS, SdkClient
from tests.sdks.conftest import is_here
from tests.sdks.observations import ENDED

LONGER_THAN_A_READ_TIMEOUT_S = 6.5


async def test_the_card_is_found_at_the_agents_address(hub: HubProcess, alice: str, client: SdkClient) -> None:
    fields = {"name": "rust expert", "description": "answers Rust questions"}
    async with online(hub, TaskPeer, agent=fields) as agent:
        run = await client.watch(hub.url, agent.handle, alice, "card")
    card = run.has_not_raised().one("card").value
    assert (card["name"], card["description"], card["version"]) == ("rust expert", "answers Rust questions", "1")
    assert card["capabilities"]["streaming"] is True
    assert [skill["id"] for skill in card["skills"]] == ["ask"]
    assert set(card["securitySchemes"]) == {"bearerSession"}
    url = hub.url + rpc_path(agent.handle)
    if not client.is_version_1:
        assert (card["protocolVersion"], card["preferredTransport"]) == ("0.3.0", "JSONRPC")
        assert card["url"] == url
        return
    interfaces = [(each["protocolBinding"], each["protocolVersion"]) for each in card["supportedInterfaces"][:2]]
    assert interfaces == [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")]
    assert {each["url"] for each in card["supportedInterfaces"][:2]} == {url}
    wanted = ("RestTransport", "HTTP+JSON") if client.binding else ("JsonRpcTransport", "JSONRPC")
    assert run.one("transport").value in wanted


async def test_a_card_of_no_user_is_refused(hub: HubProcess, alice: str, client: SdkClient) -> None:
    run = await client.watch(hub.url, "owner/never-was", alice, "card")
    assert "404" in run.one("raised").value["message"]


async def test_a_message_gets_its_answer(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        run = await client.watch(hub.url, agent.handle, alice, "send", text="what's a lifetime?")
    answer = run.has_not_raised().one("answer")
    assert answer.reply == "echo: what's a lifetime?"
    assert answer.context_id


async def test_a_stream_tells_it_as_it_happens(hub: HubProcess, alice: str, client: SdkClient) -> None:
    text = "note reading | say a lifetime | say  is | say  a region"
    async with online(hub, TaskPeer) as agent:
        run = await client.watch(hub.url, agent.handle, alice, "stream", text=text)
    first, *events = run.has_not_raised().at("event")
    assert first.kind == "task"
    assert first.state in ("submitted", "working")
    assert {event.task_id for event in events} == {first.task_id}
    assert [event.text for event in events if event.state == "working" and event.text] == ["reading"]
    pieces = [event.reply for event in events if event.kind == "artifact-update" and event.reply]
    whole = ["a lifetime is a region"] if client.is_version_1 else []  # docs/adr/0167
    assert pieces == ["a lifetime", " is", " a region", *whole]
    assert [event.state for event in events if event.state in ENDED] == ["completed"]
    assert events[-1].state == "completed"


async def test_a_task_is_found_again(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        run = await client.watch(hub.url, agent.handle, alice, "get", text="note reading | say ferris")
    answer, task, brief = run.one("answer"), run.one("task"), run.one("brief")
    for seen in (answer, task, brief):
        assert (seen.task_id, seen.context_id, seen.state) == (answer.task_id, answer.context_id, "completed")
        assert seen.reply == "ferris"
    assert task.history[0] == ("user", "note reading | say ferris")
    assert len(task.history) > 1
    assert brief.history == task.history[-1:]
    assert "found" in run.one("raised").value["message"].lower()


async def test_a_task_can_be_asked_for_until_it_is_done(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        text = "note reading | hold | say ferris"
        async with client.run(hub.url, agent.handle, alice, "poll", text=text) as run:
            answer = await run.saw("answer")
            agent.release.set()
            await run.end()
    assert answer.state in ("submitted", "working")
    task = run.has_not_raised().one("task")
    assert (task.task_id, task.state, task.reply) == (answer.task_id, "completed", "ferris")


async def test_a_caller_calls_it_off(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        run = await client.watch(hub.url, agent.handle, alice, "cancel", text="note reading | wait")
        await agent.heard("cancel")
    events, canceled = run.at("event"), run.one("canceled")
    assert (canceled.task_id, canceled.state) == (events[0].task_id, "canceled")
    assert events[-1].state == "canceled"
    if client.is_version_1:
        assert "cancel" in run.one("raised").value["message"].lower()
    else:
        run.one("not raised")  # 0.3 gets the task as it is


async def test_a_caller_that_lost_its_stream_follows_on(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        text = "note reading | hold | say a lifetime | say  is a region"
        async with client.run(hub.url, agent.handle, alice, "subscribe", text=text) as run:
            snapshot = await run.saw("again")
            agent.release.set()
            await run.end()
    assert (snapshot.kind, snapshot.state, snapshot.text) == ("task", "working", "reading")
    assert snapshot.task_id == run.at("event")[0].task_id
    events = run.at("again")[1:]
    told = ["a lifetime", " is a region", *(["a lifetime is a region"] if client.is_version_1 else [])]
    assert [event.reply for event in events if event.reply] == told
    assert events[-1].state == "completed"
    if client.is_version_1:
        run.one("raised")
    else:
        assert (run.one("late").kind, run.one("late").state) == ("task", "completed")
        run.one("not raised")


async def test_an_agent_asks_back_and_goes_on(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        scenario = {"text": "ask which one?", "more": "the second"}
        run = await client.watch(hub.url, agent.handle, alice, "follow_up", **scenario)
    question, answer = run.at("answer")
    assert (question.state, question.text) == ("input-required", "which one?")
    assert (answer.task_id, answer.context_id) == (question.task_id, question.context_id)
    assert (answer.state, answer.reply) == ("completed", "you said: the second")
    run.one("raised")  # a task that has ended takes no more


async def test_an_agent_asks_back_in_a_stream(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        scenario = {"text": "note reading | ask which one?", "more": "the second"}
        run = await client.watch(hub.url, agent.handle, alice, "follow_up_by_stream", **scenario)
    asked, answered = run.has_not_raised().at("event"), run.at("again")
    assert (asked[-1].state, asked[-1].text) == ("input-required", "which one?")
    assert {event.task_id for event in (*asked, *answered)} == {asked[0].task_id}
    assert "".join(e.reply for e in answered if e.kind == "artifact-update") == "you said: the second"
    assert answered[-1].state == "completed"


async def test_what_an_agent_attaches_arrives(hub: HubProcess, alice: str, client: SdkClient) -> None:
    steps = ["text a1 chapter one", 'data a2 {"pages": 2}', "raw a3 bytes", "url a4 https://files.example/b.png"]
    async with online(hub, TaskPeer) as agent:
        run = await client.watch(hub.url, agent.handle, alice, "send", text=" | ".join([*steps, "say done"]))
    artifacts = run.has_not_raised().one("answer").artifacts
    assert artifacts["a1"] == [{"text": "chapter one"}]
    assert artifacts["a2"][0]["data"] == {"pages": 2}
    assert artifacts["a3"] == [{"raw": "Ynl0ZXM=", "filename": "a3.txt", "mediaType": "text/plain"}]
    assert (artifacts["a4"][0]["url"], artifacts["a4"][0]["filename"]) == ("https://files.example/b.png", "a4")


async def test_an_agents_failure_is_the_tasks(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        run = await client.watch(hub.url, agent.handle, alice, "stream", text="note reading | fail out of ink")
    last = run.has_not_raised().at("event")[-1]
    assert (last.state, last.text) == ("failed", "out of ink")


async def test_an_agent_that_is_gone_is_a_failed_task(hub: HubProcess, alice: str, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        pass
    await gone(hub, agent)
    run = await client.watch(hub.url, agent.handle, alice, "send")
    answer = run.has_not_raised().one("answer")
    assert (answer.state, answer.text) == ("failed", "agent channel offline")


async def test_a_token_of_no_user_is_refused(hub: HubProcess, client: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        for scenario in ("send", "stream"):
            run = await client.watch(hub.url, agent.handle, "cw_sess_" + "0" * 32, scenario)
            assert re.search("401|sign in", run.one("raised").value["message"])
        assert agent.prompts == []


async def test_an_answer_may_take_longer_than_five_seconds(hub: HubProcess, alice: str) -> None:
    """Real speed: 5 s is the clients' own read time-out. All at once, because each takes its time."""

    async def ask(client: SdkClient, scenario: str) -> str:
        async with online(hub, Slow, delay_s=LONGER_THAN_A_READ_TIMEOUT_S) as agent:
            run = await client.watch(hub.url, agent.handle, alice, scenario)
        return "".join(str(sight.value) if sight.step == "raised" else sight.reply for sight in run.sights)

    asks = [(client, scenario) for client in CLIENTS if is_here(client) for scenario in ("send", "stream")]
    answers = await asyncio.gather(*(ask(*one) for one in asks))
    assert dict(zip(map(str, asks), answers, strict=True)) == {str(one): "echo: hello" for one in asks}
