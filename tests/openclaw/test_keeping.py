"""Behaviours 49, 50 and 53 to 55: what a restarted hub still knows."""

import os
from pathlib import Path

import pytest

from hub.data_dir import DataDirInUse, lock
from lab.agents import TaskPeer, online
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.openclaw.caller import Caller, artifacts_of, state_of, texts


async def test_50_a_journal_keeps_tasks_over_a_restart(start_hub: StartHub, make_storage: MakeStorage) -> None:
    """A memory keeps none (49), a task that asks goes on (53), and the folder of a hub that died is free (54)."""
    home = make_storage("embedded")
    hub = start_hub(home)
    alice, channel = hub.mint("alice", "session"), hub.mint("owner", "channel")
    async with (
        online(hub, TaskPeer, agent={"taskStore": "journal"}) as agent,
        online(hub, TaskPeer, agent={"taskStore": "memory"}) as forgets,
    ):
        caller, other = Caller(hub.url, agent.handle, alice), Caller(hub.url, forgets.handle, alice)
        steps = ("note hm | text a1 more | say done", "fail no", "say so far | ask which?")
        tasks = [await caller.send(one) for one in steps]
        forgotten = {"id": (await other.send("note hm | say done"))["id"]}
        await agent.leave()
        await forgets.leave()
    with pytest.raises(DataDirInUse, match=str(home.folder)):
        lock(home.folder)
    hub.kill9()
    hub.serve(0)
    assert (await other.refusal("tasks/get", forgotten))["code"] == -32001
    assert (await other.streamed_error("tasks/resubscribe", forgotten))["code"] == -32001
    for task in tasks:
        assert await caller.get(task["id"], historyLength=100) == task
        assert await caller.streamed("tasks/resubscribe", {"id": task["id"]}) == [task]
    async with TaskPeer(hub.url, channel, session_id=agent.session_id) as again:
        ended = await caller.send("this one", taskId=tasks[-1]["id"])
        [prompt] = again.prompts
    assert (prompt["taskId"], prompt["contextId"]) == (ended["id"], agent.prompts[-1]["contextId"])
    assert (ended["id"], state_of(ended)) == (tasks[-1]["id"], "completed")
    assert list(artifacts_of(ended).values()) == ["so far", "echo: this one"]
    said = [texts(one["parts"]) for one in ended["history"]]
    assert said == [steps[-1], "which?", "this one"]


def test_55_what_a_lock_file_holds_is_of_no_account(tmp_path: Path) -> None:
    for content in ("", "{not json", '{"pid": 1, "createdAt": "never"}'):
        (tmp_path / "hub.lock").write_text(content)
        os.close(lock(tmp_path))
