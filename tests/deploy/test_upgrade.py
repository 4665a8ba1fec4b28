"""Upgrades from version 0.1.0 by docs/howto/upgrade.md: every row is kept, and every ask is answered once."""

import asyncio
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from websockets.exceptions import WebSocketException

from lab import ROOT
from lab.agents import Echo, online
from lab.callers import Json, bearer, envelope, failed_text, question, reply_text, rpc_path, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import DistributedStorages, HubStorage, embedded_storage, hub_env, manage
from lab.statements import writing
from tests.conftest import HOMES
from tests.releases import V0_1_0, check_out

pytestmark = [pytest.mark.deep, pytest.mark.slow, pytest.mark.timeout(400)]

HOWTO = ROOT / "docs" / "howto" / "upgrade.md"
FILL = """
import django
django.setup()
from tests.data.rows import owner_of_everything
from tests.native.rows import person
owner_of_everything("canarytwo", person("bob"))
owner_of_everything("canaryone", person("bob"))
"""  # run by the tests of 0.1.0: a row in every table of that version
CHANGED_AT_THE_START = {"agents_process", "django_migrations", "hub_jobrun"}
Rows = dict[str, list[dict[str, Any]]]


def command_of(beginning: str) -> list[str]:
    """The arguments of a `manage.py` command that the how-to prints."""
    found = re.search(rf"^    \.venv/bin/python manage\.py ({re.escape(beginning)}.*)$", HOWTO.read_text(), re.M)
    assert found, beginning
    return shlex.split(found[1])


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of version 0.1.0."""
    return check_out(V0_1_0, tmp_path_factory.mktemp("v0.1.0"))


@pytest.fixture(params=HOMES)
def empty_home(request: pytest.FixtureRequest, tmp_path: Path) -> HubStorage:
    """A storage without tables, once of each kind."""
    if request.param == "embedded":
        return embedded_storage(tmp_path / "data")
    storages: DistributedStorages = request.getfixturevalue("distributed_storages")
    return on_empty_database(storages, storages.new(tmp_path / "data"), f"empty_{tmp_path.name}".lower())


def on_empty_database(storages: DistributedStorages, home: HubStorage, name: str) -> HubStorage:
    """The storage with another database, which has no tables."""
    name = re.sub(r"\W", "_", name)
    with psycopg.connect(storages.servers.postgres_url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return HubStorage(home.name, {**home.env, "DATABASE_URL": storages.servers.postgres_url(name)})


def all_rows(env: Mapping[str, str]) -> Rows:
    """The rows of each table, in the order of their first column."""
    names = (
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        if "DATABASE_URL" in env
        else "SELECT name FROM sqlite_master WHERE type = 'table'"
        " AND name NOT LIKE '%!_words%' ESCAPE '!' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    )
    found: Rows = {}
    with writing(env) as run:
        for (table,) in run(names).fetchall():
            read = run(f'SELECT * FROM "{table}" ORDER BY 1')
            columns = [column[0] for column in read.description]
            found[table] = [dict(zip(columns, row, strict=True)) for row in read.fetchall()]
    return found


def missing(before: Rows, after: Rows) -> Rows:
    """The rows of `before` that `after` does not have, with the same values in the columns of `before`."""
    lost: Rows = {}
    for table, rows in before.items():
        columns = list(rows[0]) if rows else []
        there = [{name: row.get(name) for name in columns} for row in after[table]]
        if absent := [row for row in rows if row not in there]:
            lost[table] = absent
    return lost


def test_the_migration_keeps_every_row_of_the_release(release: Path, empty_home: HubStorage) -> None:
    """The rows are compared before a hub starts, whose jobs may change some."""
    env = hub_env({**empty_home.env, "GATEWAY": "1", "DJANGO_SETTINGS_MODULE": "hub.settings"})
    for command in (["manage.py", "migrate", "--verbosity", "0"], ["-c", FILL]):
        done = subprocess.run(
            [sys.executable, *command], cwd=release, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    before = all_rows(empty_home.env)
    for table in CHANGED_AT_THE_START:
        before.pop(table, None)
    filled = [table for table, rows in before.items() if rows]
    assert len(filled) > 60, filled
    manage(empty_home.env, *command_of("migrate"))
    assert missing(before, all_rows(empty_home.env)) == {}
    exported = manage(empty_home.env, "export_account", "--login", "canaryone-login")
    assert exported.count("canaryone") > 60


class Asking:
    """A caller that asks an agent one numbered question after the other, each until it has an answer."""

    def __init__(self, hub: HubProcess, agent: Echo, token: str) -> None:
        self.hub, self.agent, self.token = hub, agent, token
        self.answered: list[str] = []
        self.is_over = False

    async def run(self) -> None:
        while not self.is_over:
            text = f"{self.agent.handle} {len(self.answered)}"
            await self._ask(text)
            self.answered.append(text)

    async def more(self, count: int) -> None:
        """Wait for so many further answers."""
        wanted = len(self.answered) + count
        async with asyncio.timeout(60):
            while len(self.answered) < wanted:
                await asyncio.sleep(0.05)

    async def _ask(self, text: str) -> None:
        """Repeat a question at each process in turn, with one key, as `clawbridge` does."""
        body = envelope("SendMessage", question(text, message_id=text))
        headers = bearer(self.token) | {"Idempotency-Key": text}
        for attempt in range(600):
            url = self.hub.urls[attempt % len(self.hub.urls)]
            try:
                async with web(url, headers=headers) as client:
                    response = await client.post(rpc_path(self.agent.handle), json=body)
            except httpx.TransportError:
                response = None
            result = {} if response is None else response.json().get("result", {})
            if result and not is_offline(result):
                assert reply_text(result) == f"echo: {text}"
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"no answer to {text}: {response and response.text}")


def is_offline(task: Json) -> bool:
    """True if a question was refused because its agent is not connected at this moment."""
    return bool(task["status"]["state"] == "FAILED" and failed_text(task) == "agent channel offline")


async def stay_online(hub: HubProcess, agent: Echo) -> None:
    """Connect an agent again whenever its socket closed, as the connector does."""
    attempt = 0
    while True:
        await agent.closed.wait()
        attempt += 1
        try:
            await agent.connect(hub.urls[attempt % len(hub.urls)])
        except (OSError, WebSocketException):
            await asyncio.sleep(0.1)


async def restart(hub: HubProcess, index: int) -> None:
    """End a web process by SIGTERM, and start it again with today's code."""
    hub.terminate(index)
    assert await hub.exit_code(index) == 0
    hub.code[index] = ROOT
    await asyncio.to_thread(hub.serve, index)


async def test_an_upgrade_under_asks_loses_none(
    release: Path, empty_home: HubStorage, start_hub: StartHub
) -> None:
    count = 2 if empty_home.is_grown else 1
    if empty_home.is_grown:
        await asyncio.to_thread(manage, empty_home.env, "migrate", "--verbosity", "0", at=release)
    hub = start_hub(empty_home, processes=count, worker=empty_home.is_grown, code=[release] * (count + 1))
    async with online(hub, Echo) as one, online(hub, Echo, at=count - 1) as two:
        asking = [Asking(hub, one, hub.mint("alice", "session")), Asking(hub, two, hub.mint("bob", "session"))]
        async with asyncio.TaskGroup() as tasks:
            staying = [tasks.create_task(stay_online(hub, agent)) for agent in (one, two)]
            running = [tasks.create_task(each.run()) for each in asking]
            await asyncio.gather(*(each.more(20) for each in asking))
            if empty_home.is_grown:
                await asyncio.to_thread(manage, empty_home.env, *command_of("migrate"))
                await asyncio.gather(*(each.more(20) for each in asking))
            for index in range(count):
                await restart(hub, index)
                await asyncio.gather(*(each.more(20) for each in asking))
            if hub.worker is not None:
                await asyncio.to_thread(hub.worker.stop)
                hub.code[-1] = ROOT
                await asyncio.to_thread(hub.start_worker)
            for each in asking:
                each.is_over = True
            await asyncio.gather(*running)
            for task in staying:
                task.cancel()
        with writing(empty_home.env) as run:
            turns = run("SELECT question, count(*) FROM agents_turn WHERE outcome = 'completed' GROUP BY question")
            assert dict(turns.fetchall()) == dict.fromkeys([text for each in asking for text in each.answered], 1)
        for each in asking:
            assert [prompt["text"] for prompt in each.agent.prompts] == each.answered
