"""On a hub whose tasks are in the database: broken streams go on anywhere, and tasks outlive the hub."""

import asyncio
import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.v1.caller import Caller, Event, message, reply_of, texts

HOMES = ["embedded", pytest.param("grown", marks=[pytest.mark.slow, pytest.mark.distributed])]
LONG = "note reading | say one | text made chapter | hold | more made two | say two | note almost | say three"

Shown = list[tuple[str, object]]


@pytest.fixture(params=HOMES, scope="module")
def journal_hub(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[HubProcess]:
    """The grown one has two processes."""
    home = make_storage(request.param)
    serving = HubProcess.start(home, processes=2 if home.is_grown else 1, TASK_STORE="journal")
    yield serving
    serving.stop()


async def until_held(caller: Caller) -> list[Event]:
    """The frames of a new stream up to where the agent waits; then the connection is dropped."""
    seen = []
    async with caller.open("SendStreamingMessage", {"message": message(LONG)}) as events:
        async for event in events:
            seen.append(event)
            if event.kind == "artifactUpdate" and event.content["artifact"]["artifactId"] == "made":
                break
    return seen


async def follow(caller: Caller, seen: str, method: str = "SubscribeToTask") -> list[Event]:
    """The frames for a client that comes back with the id of the last frame that it saw."""
    params = {"id": seen.rpartition(".")[0]} if method == "SubscribeToTask" else {"message": message(LONG)}
    async with caller.open(method, params, Last_Event_ID=seen) as events:
        return [event async for event in events]


def shown(events: list[Event]) -> Shown:
    return [(one.id, one.content) for one in events]


def said(events: list[Event], artifact_id: str) -> str:
    artifacts = [one.content["artifact"] for one in events if one.kind == "artifactUpdate"]
    return " ".join(texts(one["parts"]) for one in artifacts if one["artifactId"] == artifact_id).strip()


def check_whole(events: list[Event]) -> None:
    """Each frame once, in order, and nothing else."""
    task_id = events[0].content["id"]
    assert [event.id for event in events] == [f"{task_id}.{seq}" for seq in range(len(events))]
    # At the end each is told whole (docs/adr/0167).
    assert said(events, "reply-1") == "one two three onetwothree"
    assert said(events, "made") == "chapter two chaptertwo"
    assert events[-1].state == "COMPLETED"


@pytest.mark.parametrize("method", ["SendStreamingMessage", "SubscribeToTask"])
async def test_a_stream_that_broke_goes_on_with_what_was_missed(journal_hub: HubProcess, method: str) -> None:
    """Whichever process the client comes back to, and however often it comes."""
    token = journal_hub.mint("alice", "session")
    async with online(journal_hub, TaskPeer) as agent:
        seen = await until_held(Caller(journal_hub.url, agent.handle, token))
        callers = [Caller(url, agent.handle, token) for url in journal_hub.urls]
        following = [asyncio.create_task(follow(caller, seen[-1].id, method)) for caller in callers]
        agent.release.set()
        for missed in await asyncio.gather(*following):
            check_whole(seen + missed)
        for caller in callers:
            assert shown(await follow(caller, seen[-1].id, method)) == shown(missed)
            assert shown(await follow(caller, seen[1].id)) == shown([*seen[2:], *missed])
        assert len(agent.prompts) == 1


def token_of(*members: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(members).encode()).decode()


MADE_UP = [
    token_of("", ""),
    token_of("yesterday", "task-1"),
    token_of("2030-01-01T00:00:00.000", "task-1"),
    token_of("2030-01-01T00:00:00.000Z", "task\0"),
    token_of("2030-01-01T00:00:00.000Z", "\ud800"),
    token_of("99999-01-01T00:00:00.000Z", "task-1"),
    token_of(1, 2),
    "rubbish",
]


async def test_a_made_up_page_token_is_refused_before_the_database_sees_it(journal_hub: HubProcess) -> None:
    async with online(journal_hub, TaskPeer) as agent:
        caller = Caller(journal_hub.url, agent.handle, journal_hub.mint("alice", "session"))
        for page_token in MADE_UP:
            refused = await caller.refusal("ListTasks", {"pageToken": page_token})
            assert refused["code"] == -32602, page_token


async def test_lists_take_any_context_and_time(journal_hub: HubProcess) -> None:
    async with online(journal_hub, TaskPeer) as agent:
        caller = Caller(journal_hub.url, agent.handle, journal_hub.mint("alice", "session"))
        await caller.send("hello")
        for wanted in ({"contextId": "no-one's'; --"}, {"statusTimestampAfter": "9999-12-31T23:59:59Z"}):
            assert (await caller.call("ListTasks", wanted))["totalSize"] == 0
        since = {"statusTimestampAfter": "0001-01-01T00:00:00Z", "status": "TASK_STATE_COMPLETED"}
        assert (await caller.call("ListTasks", since))["totalSize"] == 1


async def streams_of_a_busy_database(hub: HubProcess) -> tuple[Caller, list[list[Event]]]:
    """A caller and streams: two threads wait for a lock to write the last note of each, and its end.

    Whichever is first, a stream tells that note once, and what is kept of the task is what the stream told.
    """
    async with online(hub, TaskPeer) as agent:
        caller, streams = Caller(hub.url, agent.handle, hub.mint("bob", "session")), []
        for count in range(1, 16):
            streaming = asyncio.create_task(caller.stream("note reading | wait"))
            chat_id = (await agent.heard("prompt", count=count))["chatId"]
            with closing(sqlite3.connect(hub.home.folder / "hub.sqlite3")) as busy, busy:
                busy.execute("BEGIN IMMEDIATE")
                await agent.status(chat_id, "working", text="almost")
                await asyncio.sleep(0.012)  # SQLite looks less and less often: the second may be the first to see
                await agent.chunk(chat_id, "done", done=True)
                await asyncio.sleep(0.02 + 0.005 * count)
            streams.append(await streaming)
    return caller, streams


async def test_tasks_are_there_after_a_restart_as_they_were_told(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), TASK_STORE="journal")
    asker, streams = await streams_of_a_busy_database(hub)
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, hub.mint("alice", "session"))
        agent.release.set()
        told = await caller.stream(LONG)
        check_whole(told)
        await caller.send("hello")
        asking = await caller.send("ask which one?")
        listed = await caller.call("ListTasks", {"includeArtifacts": True})
        assert [one["status"]["state"] for one in listed["tasks"]] == [
            "TASK_STATE_INPUT_REQUIRED",
            "TASK_STATE_COMPLETED",
            "TASK_STATE_COMPLETED",
        ]
        hub.terminate()
        await hub.exit_code()
        await asyncio.to_thread(hub.serve, 0)
        assert await caller.call("ListTasks", {"includeArtifacts": True}) == listed
        for task in listed["tasks"]:
            assert await caller.get(task["id"]) == task
        assert shown(await follow(caller, told[0].id)) == shown(told[1:])
        for one in streams:
            assert shown(await follow(asker, one[0].id)) == shown(one[1:])
        await agent.closed.wait()
        await agent.connect()
        done = await caller.send("the red one", taskId=asking["id"])
        assert done["id"] == asking["id"]
        assert reply_of(done) == "you said: the red one"
