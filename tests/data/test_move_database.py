"""A hub that outgrew its folder: everything of it goes on, on PostgreSQL."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
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


def rows_of(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert found is not None
    return int(found[0])


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
    """A copy of one's own."""
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
            webhook = await post(hub, "/api/v1/webhooks", owner, {"url": receiver.url, "events": ["chat.event"]})
            await send(hub.url, peer.handle, "what is left of this?", alice)
            upload = await post_file(hub, peer.session_id or "", owner, b"\x00\x01 bytes \xff")
            await heard(receiver, 4)
            await hub_stopped(hub)
            before = audit_rows(home)
            with closing(sqlite3.connect(home.folder / "hub.sqlite3")) as database, database:
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
            assert [row["question"] for row in reversed(log["recent"])] == [*before, "still there?"]
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
    assert payload_of_first_event(target.env["DATABASE_URL"]) == ODD.replace("\0", "\N{REPLACEMENT CHARACTER}")


async def hub_stopped(hub: HubProcess) -> None:
    hub.terminate()
    assert await hub.exit_code() == 0


async def post(hub: HubProcess, path: str, token: str, body: Any) -> Any:
    async with web(hub.url) as http:
        answer = await http.post(path, json=body, headers=bearer(token))
    assert answer.is_success, answer.text
    return answer.json()


async def post_file(hub: HubProcess, session_id: str, token: str, data: bytes) -> Any:
    async with web(hub.url) as http:
        answer: httpx.Response = await http.post(
            f"/api/v1/sessions/{session_id}/files",
            files={"file": ("a.bin", data, "application/octet-stream")},
            headers=bearer(token),
        )
    assert answer.is_success, answer.text
    return answer.json()


def audit_rows(home: HubStorage) -> list[str]:
    with closing(sqlite3.connect(home.folder / "hub.sqlite3")) as database:
        return [row[0] for row in database.execute("SELECT question FROM agents_turn ORDER BY id")]


def payload_of_first_event(url: str) -> str:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT payload FROM agents_event WHERE id = 1").fetchone()
    assert found is not None
    return str(found[0])


def test_numbers_go_on_after_the_highest_ever_given_and_a_second_move_is_refused(
    small_home: HubStorage, target: HubStorage
) -> None:
    """A turn remembers the number of a connection that is gone: no new one may get it."""
    home, url = small_home, target.env["DATABASE_URL"]
    with closing(sqlite3.connect(home.folder / "hub.sqlite3")) as database, database:
        database.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('agents_connection', 41)")
    assert move(home, url).returncode == 0
    with psycopg.connect(url) as connection:
        sequences = "pg_get_serial_sequence('{0}', 'id')"
        [connections] = (
            connection.execute(f"SELECT nextval({sequences.format('agents_connection')})").fetchone() or []
        )
        [users] = connection.execute(f"SELECT nextval({sequences.format('accounts_user')})").fetchone() or []
    assert (connections, users) == (42, 2)
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
