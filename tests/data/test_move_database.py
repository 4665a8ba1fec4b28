"""A hub that outgrew its folder: everything of it goes on, on PostgreSQL."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hub.data_dir import lock
from hub.database_move import Sum
from lab.agents import TaskPeer, online
from lab.callers import bearer, inbound, reply_text, send, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import DistributedStorages, HubStorage, MakeStorage, embedded_storage, manage, run_command
from lab.receivers import receiving
from tests.pushes.client import client, heard

pytestmark = [pytest.mark.slow, pytest.mark.distributed, pytest.mark.timeout(300)]

OPTIONS = {"TASK_STORE": "journal", "WEBHOOK_ALLOW_PRIVATE": 1}
ODD = "né\0te \U0001f980 'quoted' \\N \t tab"


def move(home: HubStorage, url: str) -> subprocess.CompletedProcess[str]:
    return run_command(home.env, "move_database", "--to", url)


def read(url: str, statement: str) -> Any:
    """The first value of the first row."""
    with psycopg.connect(url) as connection:
        found = connection.execute(statement).fetchone()
    assert found is not None
    return found[0]


def rows_of(url: str, table: str) -> Any:
    return read(url, f"SELECT count(*) FROM {table}")


async def post(hub: HubProcess, path: str, token: str, **options: Any) -> Any:
    async with web(hub.url) as http:
        answer = await http.post(path, headers=bearer(token), **options)
    assert answer.is_success, answer.text
    return answer.json()


@pytest.fixture
def target(distributed_storages: DistributedStorages, tmp_path: Path) -> HubStorage:
    """An empty, migrated PostgreSQL."""
    return distributed_storages.new(tmp_path / "unused")


@pytest.fixture(scope="module")
def small(make_storage: MakeStorage) -> HubStorage:
    """A SQLite hub with one user; tests copy it."""
    home = make_storage("embedded")
    manage(home.env, "mint_token", "--login", "alice", "--kind", "session")
    return home


@pytest.fixture
def small_home(small: HubStorage, tmp_path: Path) -> HubStorage:
    shutil.copytree(small.folder, tmp_path / "data")
    return embedded_storage(tmp_path / "data")


async def test_tokens_agents_and_audit_of_a_grown_hub_go_on_working(
    make_storage: MakeStorage, target: HubStorage, start_hub: StartHub
) -> None:
    home = make_storage("embedded")
    hub = start_hub(home, **OPTIONS)
    owner, alice = hub.mint("owner", "session"), hub.mint("alice", "session")
    with receiving() as receiver:
        async with online(hub, TaskPeer) as peer:
            caller = client(hub, peer)
            pushed = await caller.asked(
                'text a1 one | data a2 {"n": [1.5, null]} | say all', {"url": receiver.url}
            )
            await heard(receiver, 3)
            task = await caller.get(pushed["id"])
            webhook = await post(
                hub, "/api/v1/webhooks", owner, json={"url": receiver.url, "events": ["chat.event"]}
            )
            await send(hub.url, peer.handle, "what is left of this?", alice)
            upload = await post(
                hub,
                f"/api/v1/sessions/{peer.session_id}/files",
                owner,
                files={"file": ("a.bin", b"\x00\x01 bytes \xff", "application/octet-stream")},
            )
            await heard(receiver, 4)
            await hub_stopped(hub)
            with closing(sqlite3.connect(home.folder / "hub.sqlite3")) as database, database:
                before = database.execute("SELECT question FROM agents_turn ORDER BY id").fetchall()
                database.execute("UPDATE agents_event SET payload = ? WHERE id = 1", [ODD])
            done = move(home, target.env["DATABASE_URL"])
            assert done.returncode == 0, done.stdout + done.stderr
            assert "DIFFERS" not in done.stdout
            assert "1 texts held NUL" in done.stderr

            moved = HubStorage("grown", {**target.env, "DATA_DIR": home.env["DATA_DIR"]})
            grown = start_hub(moved, **OPTIONS)
            await peer.connect(grown.url)
            assert reply_text(await send(grown.url, peer.handle, "still there?", alice)) == "echo: still there?"
            log = await inbound(grown.url, peer.agent["id"], owner)
            assert [row["question"] for row in reversed(log["recent"])] == [
                *(one for [one] in before),
                "still there?",
            ]
            again = client(grown, peer)
            again.headers = caller.headers
            assert await again.get(task["id"]) == task
            async with web(grown.url) as http:
                kept = await http.get(f"/api/v1/files/{upload['id']}/content", headers=bearer(owner))
                hooks = await http.get(f"/api/v1/webhooks/{webhook['id']}/deliveries", headers=bearer(owner))
                tested = await http.post(f"/api/v1/webhooks/{webhook['id']}/test", headers=bearer(owner))
            assert kept.content == b"\x00\x01 bytes \xff"
            assert hooks.json()["items"]
            assert tested.is_success  # its secret is still readable: the key came along in DATA_DIR
    payload = read(target.env["DATABASE_URL"], "SELECT payload FROM agents_event WHERE id = 1")
    assert payload == ODD.replace("\0", "\N{REPLACEMENT CHARACTER}")


async def hub_stopped(hub: HubProcess) -> None:
    hub.terminate()
    assert await hub.exit_code() == 0


def test_numbers_go_on_after_the_highest_ever_given_and_a_second_move_is_refused(
    small_home: HubStorage, target: HubStorage
) -> None:
    """A turn remembers the number of a connection that is gone: no new one may get it."""
    home, url = small_home, target.env["DATABASE_URL"]
    with closing(sqlite3.connect(home.folder / "hub.sqlite3")) as database, database:
        database.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('agents_connection', 41)")
    assert move(home, url).returncode == 0
    for table, following in (("agents_connection", 42), ("accounts_user", 2)):
        assert read(url, f"SELECT nextval(pg_get_serial_sequence('{table}', 'id'))") == following, table
    again = move(home, url)
    assert again.returncode == 1
    assert "is not empty: accounts_credential has rows; nothing was moved" in again.stderr
    assert rows_of(url, "accounts_user") == 1


def test_a_running_hub_is_not_moved(small_home: HubStorage, target: HubStorage) -> None:
    held = lock(small_home.folder)  # as a running hub holds it
    done = move(small_home, target.env["DATABASE_URL"])
    os.close(held)
    assert done.returncode == 1
    assert "another hub runs on" in done.stderr
    assert rows_of(target.env["DATABASE_URL"], "accounts_user") == 0


def test_a_failure_leaves_the_target_empty(small_home: HubStorage, target: HubStorage) -> None:
    """SQLite keeps texts of any length, PostgreSQL does not."""
    home, url = small_home, target.env["DATABASE_URL"]
    with closing(sqlite3.connect(home.folder / "hub.sqlite3")) as database, database:
        database.execute("UPDATE accounts_user SET login = ?", ["x" * 100])
    done = move(home, url)
    assert done.returncode == 1
    assert "value too long" in done.stderr
    assert [rows_of(url, table) for table in ("accounts_user", "accounts_credential")] == [0, 0]
    assert rows_of(url, "auth_permission") > 0


def test_a_wrong_target_is_one_sentence(small_home: HubStorage, distributed_storages: DistributedStorages) -> None:
    empty = distributed_storages.servers.postgres_url("postgres")
    for url, sentence in (
        ("mysql://u@h/d", "want postgres://"),
        ("postgres://postgres@127.0.0.1:1/nothing", "refused"),
        (empty, "older release: run `manage.py migrate` there first"),
    ):
        done = move(small_home, url)
        assert (done.returncode, sentence in done.stderr) == (1, True), done.stderr
        assert "Traceback" not in done.stderr


def test_every_value_counts_in_a_sum() -> None:
    rows = [[1, "a", None, b"x"], [2, "b", True, b""]]
    same, other = Sum(), Sum()
    for row in rows:
        same.add(row)
    for row in reversed(rows):
        other.add(row)
    assert same == other
    changed = Sum()
    for row in ([1, "a", None, b"x"], [2, "b", False, b""]):
        changed.add(row)
    assert changed != same
