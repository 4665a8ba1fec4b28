"""Behaviours 49, 50 and 53 to 55: what a restarted hub still knows."""

import os
from pathlib import Path

from hub.data_dir import DataDirInUse, lock
from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.openclaw.caller import Caller, artifacts_of, state_of, texts


def restart(hub: HubProcess) -> None:
    hub.kill9()
    hub.serve(0)


async def test_49_a_memory_is_empty_after_a_restart(start_hub: StartHub, make_storage: MakeStorage) -> None:
    hub = start_hub(make_storage("embedded"))
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, hub.mint("alice", "session"))
        task = await caller.send("note hm | say done")
        await agent.leave()
    restart(hub)
    assert (await caller.refusal("tasks/get", {"id": task["id"]}))["code"] == -32001
    assert (await caller.streamed_error("tasks/resubscribe", {"id": task["id"]}))["code"] == -32001


async def test_50_a_journal_keeps_tasks_over_a_restart(start_hub: StartHub, make_storage: MakeStorage) -> None:
    hub = start_hub(make_storage("embedded"))
    async with online(hub, TaskPeer, agent={"taskStore": "journal"}) as agent:
        caller = Caller(hub.url, agent.handle, hub.mint("alice", "session"))
        tasks = [
            await caller.send(steps) for steps in ("note hm | text a1 more | say done", "fail no", "ask which?")
        ]
        await agent.leave()
    restart(hub)
    for task in tasks:
        assert await caller.get(task["id"], historyLength=100) == task
        assert await caller.streamed("tasks/resubscribe", {"id": task["id"]}) == [task]


async def test_53_a_task_that_asks_goes_on_after_a_restart(start_hub: StartHub, make_storage: MakeStorage) -> None:
    hub = start_hub(make_storage("embedded"), TASK_STORE="journal")
    alice, channel = hub.mint("alice", "session"), hub.mint("owner", "channel")
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        asking = await caller.send("say so far | ask which?")
        session_id = agent.session_id
        await agent.leave()
    restart(hub)
    async with TaskPeer(hub.url, channel, session_id=session_id) as again:
        ended = await caller.send("this one", taskId=asking["id"])
        [prompt] = again.prompts
    assert (prompt["taskId"], prompt["contextId"]) == (asking["id"], agent.prompts[0]["contextId"])
    assert (ended["id"], state_of(ended)) == (asking["id"], "completed")
    assert list(artifacts_of(ended).values()) == ["so far", "echo: this one"]
    said = [texts(one["parts"]) for one in ended["history"]]
    assert said == ["say so far | ask which?", "which?", "this one"]


async def test_54_a_folder_is_one_hubs_and_free_again_when_it_died(
    start_hub: StartHub, make_storage: MakeStorage
) -> None:
    home = make_storage("embedded")
    hub = start_hub(home)
    refused = ""
    try:
        lock(home.folder)
    except DataDirInUse as in_use:
        refused = str(in_use)
    assert str(home.folder) in refused
    restart(hub)
    hub.check_running()


def test_55_what_a_lock_file_holds_is_of_no_account(tmp_path: Path) -> None:
    for content in ("", "{not json", '{"pid": 1, "createdAt": "never"}'):
        (tmp_path / "hub.lock").write_text(content)
        os.close(lock(tmp_path))
