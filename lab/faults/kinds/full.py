"""F18 and F28: nothing can be written: PostgreSQL only reads, and the disk of SQLite, or PostgreSQL, is full."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg

from lab.agents import Echo, online
from lab.callers import bearer, envelope, question, reply_text, rpc_path, send, web
from lab.faults.disk import Disk
from lab.faults.fault import Fault, Scene
from lab.hub_process import HubProcess
from lab.hub_storage import HubStorage, embedded_storage, manage
from lab.processes import ProgramError
from lab.servers import Postgres, Redis

READ_ONLY_S = 8.0
MIGRATED_WITHIN_S = 600
FULL_ASKS = 12
SERVED_WITHIN_S = 60.0
ANSWERED_WITHIN_S = 15.0
NEWEST = "SELECT coalesce(max(id), 0) FROM agents_turn"
NEVER_USED = "UPDATE accounts_credential SET last_used_at = NULL"  # so that its use would be noted
CHANGE = "ALTER SYSTEM SET default_transaction_read_only = {value}"
LEFT_BYTES = (0, 4_096, 8_192, 12_288, 20_480)  # pages of a mounted disk


async def nothing_written(scene: Scene) -> None:
    """PostgreSQL refuses every write for a while; then a hub of its own gets a full disk."""
    for number in scene.numbers:
        await read_only(scene)
        await full_disk(scene, number)


# PostgreSQL.


async def read_only(scene: Scene) -> None:
    """The hub refuses asks and answers reads; afterwards it serves again."""
    scene.stack.sql(NEVER_USED)
    _set_read_only(scene, "on")
    try:
        await asyncio.sleep(1)  # what had begun to write may end
        ((newest,),) = scene.stack.sql(NEWEST)
        until, number = time.monotonic() + scene.stack.seconds(READ_ONLY_S, at_least_s=4.0), 0
        while time.monotonic() < until:
            await _ask_in_vain(scene, number := number + 1)
            await _read(scene, number)
        ((still,),) = scene.stack.sql(NEWEST)
        scene.note("a read-only database has no half of an ask", still == newest, f"{newest} {still}")
    finally:
        _set_read_only(scene, "off")
    await scene.check_served("every process serves after the database accepts writes again", SERVED_WITHIN_S)


async def _ask_in_vain(scene: Scene, number: int) -> None:
    answer = await scene.ask(scene.agent(number), number)
    ok = answer.status == 503 and answer.retry_after and answer.took_s < ANSWERED_WITHIN_S
    scene.note("an ask while the database is read-only: 503 with Retry-After", ok, answer.summary)


async def _read(scene: Scene, number: int) -> None:
    headers = bearer(scene.stack.tokens[scene.caller(number), "session"])
    for url in scene.stack.urls:
        async with web(url) as client:
            for path in ("/api/v1/me", "/api/v1/agents", "/livez"):
                status = (await client.get(path, headers=headers)).status_code
                scene.note("reads go on while nothing can be written", status == 200, f"{path} {status}")


def _set_read_only(scene: Scene, value: str) -> None:
    scene.stack.sql(CHANGE.format(value=value))
    scene.stack.sql("SELECT pg_reload_conf()")


# A full disk.


async def full_disk(scene: Scene, number: int) -> None:
    """Fill the disk of a further, embedded hub; the number chooses how much room is left."""
    await asyncio.to_thread(_fill_embedded, scene, number)


async def full_postgres(scene: Scene) -> None:
    """Fill the disk of a further PostgreSQL, whose hub is on another disk."""
    for number in scene.numbers:
        await asyncio.to_thread(_fill_postgres, scene, number)


def _fill_embedded(scene: Scene, number: int) -> None:
    """Run in a thread, because the start of a hub blocks."""
    with (
        closing(Disk(scene.stack.folder / f"full-{number}-{time.time_ns()}" / "data")) as disk,
        HubProcess.start(embedded_storage(disk.folder), TEST_TIME_SCALE=scene.stack.scale) as hub,
    ):
        told = asyncio.run(_fill(scene, hub, disk, number))
        hub.stop()
        with closing(sqlite3.connect(hub.home.folder / "hub.sqlite3")) as database:
            ((sound,),) = database.execute("PRAGMA integrity_check").fetchall()
            scene.note("a database whose disk was full is sound", sound == "ok", str(sound))
            _check_whole(scene, database, told)


def _fill_postgres(scene: Scene, number: int) -> None:
    folder = scene.stack.folder / f"full-postgres-{number}-{time.time_ns()}"
    with closing(Disk(folder / "disk")) as disk:
        if not disk.is_mounted:
            raise ProgramError("F28 needs a file system of its own: run it as a user who may mount one")
        disk.folder.chmod(0o755)
        with (
            _hub_storage(disk, folder) as storage,
            HubProcess.start(storage, worker=True, TEST_TIME_SCALE=scene.stack.scale) as hub,
        ):
            told = asyncio.run(_fill(scene, hub, disk, number))
            hub.stop()
            with psycopg.connect(storage.env["DATABASE_URL"]) as database:
                _check_whole(scene, database, told)


@contextmanager
def _hub_storage(disk: Disk, folder: Path) -> Iterator[HubStorage]:
    """PostgreSQL on the disk; Redis and all else beside it."""
    postgres, redis = Postgres(disk.folder, log=folder / "postgres.log"), Redis(folder)
    try:
        postgres.start()
        redis.start()
        env = {"DATA_DIR": str(folder / "data"), "DATABASE_URL": postgres.url(), "REDIS_URL": redis.url()}
        manage(env, "migrate", "--verbosity", "0", within_s=MIGRATED_WITHIN_S)
        yield HubStorage("grown", env)
    finally:
        postgres.stop("immediate")
        redis.stop()


async def _fill(scene: Scene, hub: HubProcess, disk: Disk, number: int) -> int:
    """Ask and read while the disk is full, then until an ask is answered; the number of prompts sent."""
    pid = hub.programs[0].pid
    alice = hub.mint("alice", "session")
    async with online(hub, Echo) as agent:
        kept = await send(hub.url, agent.handle, "before", alice)
        disk.leave(LEFT_BYTES[number % len(LEFT_BYTES)], pid)
        try:
            await _ask_full(scene, hub, agent.handle, alice)
            await _read_full(scene, hub, agent.handle, kept["id"], alice)
        finally:
            disk.remove_limit(pid)
        until, answer = time.monotonic() + SERVED_WITHIN_S, ""
        while not answer and time.monotonic() < until:
            if agent.closed.is_set():  # a process whose heartbeats were not written counts as dead
                with suppress(OSError):
                    await agent.connect()
            answer = await _answer_to(hub, agent.handle, "after", alice)
            await asyncio.sleep(0 if answer else 0.5)
        scene.note("a hub whose disk has room again serves", answer == "echo: after", answer)
        return len(agent.prompts)


async def _ask_full(scene: Scene, hub: HubProcess, handle: str, token: str) -> None:
    """Ask until the disk is full, and some more."""
    refused = 0
    for number in range(200):
        body = envelope("SendMessage", question(f"full {number} " + "x" * 1_000))
        began = time.monotonic()
        async with web(hub.url) as client:
            response = await client.post(rpc_path(handle), json=body, headers=bearer(token))
        took_s = time.monotonic() - began
        if response.status_code == 200 and "result" in response.json():
            is_told = response.json()["result"]["status"]["state"] in ("COMPLETED", "FAILED")
            scene.note("an ask that was begun before the disk was full ends", is_told, response.text[:200])
        else:
            refused += 1
            ok = response.status_code == 503 and "retry-after" in response.headers and took_s < ANSWERED_WITHIN_S
            detail = f"{response.status_code} {took_s:.1f} s {response.text[:100]}"
            scene.note("an ask while the disk is full: 503 with Retry-After", ok, detail)
        if refused >= FULL_ASKS:
            break
    scene.note("the disk was full", refused > 0, f"{refused} refused")


async def _read_full(scene: Scene, hub: HubProcess, handle: str, task_id: str, token: str) -> None:
    async with web(hub.url) as client:
        for path in ("/livez", "/readyz", "/api/v1/agents", "/api/v1/me", f"/api/a2a/v1/agents/{handle}/card"):
            status = (await client.get(path, headers=bearer(token))).status_code
            scene.note("reads go on while the disk is full", status in (200, 404), f"{path} {status}")
        body = envelope("GetTask", {"id": task_id})
        task = await client.post(rpc_path(handle), json=body, headers=bearer(token))
        scene.note("a task is read while the disk is full", "result" in task.json(), task.text[:100])


async def _answer_to(hub: HubProcess, handle: str, text: str, token: str) -> str:
    """The reply; empty while the hub refuses asks, or the agent is not connected."""
    async with web(hub.url) as client:
        body = envelope("SendMessage", question(text))
        response = await client.post(rpc_path(handle), json=body, headers=bearer(token))
    task = response.json().get("result") or {}
    return reply_text(task) if task.get("status", {}).get("state") == "COMPLETED" else ""


def _check_whole(scene: Scene, database: sqlite3.Connection | psycopg.Connection, prompts: int) -> None:
    ((still_open,),) = database.execute("SELECT count(*) FROM agents_turn WHERE outcome IS NULL").fetchall()
    ((counted,),) = database.execute("SELECT sum(queries) FROM agents_dailyusage").fetchall()
    ((charged,),) = database.execute("SELECT count(*) FROM agents_turn WHERE usage_day IS NOT NULL").fetchall()
    scene.note("no turn is left open by a full disk", still_open == 0, f"{still_open}")
    ok = counted == charged == prompts
    scene.note("as many questions were counted as written and asked", ok, f"{counted} {charged} {prompts}")


FAULTS = [
    Fault("F18", "nothing can be written: read-only PostgreSQL, a full disk", 1, 5, nothing_written,
          fills=("an ask while the database is read-only", "an ask while the disk is full", "reads go on")),
    Fault("F28", "the disk of PostgreSQL is full", 0, 5, full_postgres, fills=("the disk was full",)),
]  # fmt: skip
