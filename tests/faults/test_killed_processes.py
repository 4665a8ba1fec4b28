"""kill -9 of a hub process leaves no open turn and no claim behind after 35 s, and less on the hubs of tests."""

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Awaitable

import httpx
import pytest

from lab.agents import Echo, Stall, online
from lab.bench import calls, hubs
from lab.callers import Json, failed_text, inbound, reply_text, send
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import SQLITE_FILE, HubStorage, MakeStorage
from lab.waiting import eventually, on_hub, until

WITHIN_S = on_hub(35.0, at_least_s=12.0)
SLACK_S = 5  # for asking every second on a busy machine

pytestmark = pytest.mark.slow


async def check_served_again(url: str, agent: Stall, token: str, since: float) -> None:
    """Another caller's question is answered, WITHIN_S after the death at the latest."""

    async def served() -> bool:
        task = await send(url, agent.handle, "next", token)
        return bool(task["status"]["state"] == "COMPLETED")

    left_s = since + WITHIN_S + SLACK_S - time.monotonic()
    await eventually(served, "another caller is served", within_s=left_s, every_s=0.5)


async def check_nothing_open(hub: HubProcess, url: str, agent: Stall) -> None:
    log = await inbound(url, agent.agent["id"], hub.mint("owner", "session"))
    lost = [row for row in log["recent"] if row["question"] == "lost"]
    assert [row["ok"] for row in lost] == [False]
    assert not {row["deniedReason"] for row in log["recent"] if not row["ok"]} & {None, "", "in_progress"}


async def swallow(asking: Awaitable[Json]) -> Json | None:
    """The answer, or None when the connection broke."""
    try:
        return await asking
    except httpx.TransportError:
        return None


@pytest.mark.distributed
async def test_when_a_process_dies_its_callers_are_told_and_others_are_served(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    """First the process of a caller, then that of the agent."""
    hub = start_hub(make_storage("grown"), processes=2, worker=True)
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with online(hub, Stall, at=0, only_first=True) as agent:
        asking = asyncio.create_task(swallow(send(hub.urls[1], agent.handle, "lost", alice)))
        await agent.heard("prompt")
        hub.kill9(1)
        died = time.monotonic()
        assert await asking is None
        await check_served_again(hub.urls[0], agent, bob, died)
        await check_nothing_open(hub, hub.urls[0], agent)
    await asyncio.to_thread(hub.serve, 1)
    async with online(hub, Stall, at=0, only_first=True) as agent:
        waiting = asyncio.create_task(send(hub.urls[1], agent.handle, "lost", alice))
        await agent.heard("prompt")
        hub.kill9(0)
        died = time.monotonic()
        await agent.closed.wait()
        await agent.connect(hub.urls[1])
        await check_served_again(hub.urls[1], agent, bob, died)
        task = await asyncio.wait_for(waiting, WITHIN_S + SLACK_S)
        assert failed_text(task) == "agent channel offline"
        await check_nothing_open(hub, hub.urls[1], agent)


async def test_when_the_only_process_dies_the_next_start_is_clean_and_answers_are_in_the_audit(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"))
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with (
        online(hub, Echo) as answering,
        online(hub, Stall, only_first=True, agent={"dailyBudgetQueries": 2}) as agent,
    ):
        asking = asyncio.create_task(swallow(send(hub.url, agent.handle, "lost", alice)))
        await agent.heard("prompt")
        kept = [f"kept {number}" for number in range(5)]
        for text in kept:
            assert reply_text(await send(hub.url, answering.handle, text, alice)) == f"echo: {text}"
        hub.kill9(0)
        died = time.monotonic()
        assert await asking is None
        await agent.closed.wait()
        await asyncio.to_thread(hub.serve, 0)
        await agent.connect()
        await check_served_again(hub.url, agent, bob, died)
        await check_nothing_open(hub, hub.url, agent)
        spent = failed_text(await send(hub.url, agent.handle, "over", bob))
        log = await inbound(hub.url, answering.agent["id"], hub.mint("owner", "session"))
    assert spent == f"agent @{agent.handle} hit its daily budget (2)"
    assert sorted(row["question"] for row in log["recent"] if row["ok"]) == kept


def completed_turns(storage: HubStorage, *, with_log: bool = True) -> int:
    """The number of completed turns in a SQLite database, or in a copy of its file without the log."""
    path = storage.folder / SQLITE_FILE
    if not with_log:
        path = shutil.copy(path, storage.folder.parent / "without-log.sqlite3")
    connection = sqlite3.connect(path)
    try:
        [[count]] = connection.execute("SELECT count(*) FROM agents_turn WHERE outcome = 'completed'")
        return int(count)
    except sqlite3.DatabaseError:  # the file was copied while it changed
        return 0
    finally:
        connection.close()


def test_the_log_is_copied_into_the_file_while_the_hub_runs_and_a_kill_loses_no_turn(
    make_storage: MakeStorage,
) -> None:
    storage, asks = make_storage("embedded"), 150
    users = hubs.seed(storage, 2)
    with hubs.running(storage, users) as hub:
        [target] = hub.asked()
        asyncio.run(calls.ask_over_one(target.port, target.callers[0], "unary", asks))
        until(
            lambda: completed_turns(storage, with_log=False) > 0, "turns are in the file alone", within_s=WITHIN_S
        )
        hub.process.kill9()
        assert completed_turns(storage) == asks
