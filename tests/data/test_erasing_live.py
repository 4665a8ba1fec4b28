"""An account is erased while its agent is online and its owner has asked others, of a running hub of each kind."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest

from lab.agents import Echo, online
from lab.callers import call, inbound, question, reply_text, send
from lab.channel_agent import ChannelAgent
from lab.hub_process import StartHub
from lab.hub_storage import HubStorage
from lab.receivers import receiving
from lab.waiting import eventually
from tests.processes.conftest import rest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORD = "canaryword"


async def test_an_account_is_gone_from_a_running_hub(home: HubStorage, start_hub: StartHub) -> None:
    hub = start_hub(home, worker=home.is_grown, TASK_STORE="journal", WEBHOOK_ALLOW_PRIVATE=1)
    alice, owner = hub.mint("alice", "session"), hub.mint("owner", "session")
    with receiving() as receiver:
        async with (
            online(hub, Echo) as agent,
            ChannelAgent(hub.url, hub.mint("alice", "channel"), host=WORD) as own,
        ):
            await rest(hub, "POST", "/webhooks", owner, url=receiver.url, events=["*"])
            for text in (f"say {WORD}", f"again, {WORD}"):
                assert WORD in reply_text(await send(hub.url, agent.handle, text, alice))
            assert reply_text(await send(hub.url, agent.handle, "kept words", owner))
            assert any(WORD in str(value) for _, value in values(home))
            await rest(hub, "DELETE", "/me/account?login=alice", alice)
            refused = await call(hub.url, agent.handle, alice, "SendMessage", question("more"))
            assert refused.status_code == 401
            await own.closed.wait()

            async def is_gone() -> bool:
                return not any(WORD in str(value) or "alice" in str(value) for _, value in values(home))

            await eventually(is_gone, "nothing of alice is left", within_s=70, every_s=1)
            log = await inbound(hub.url, agent.agent["id"], owner)
            told = [(row["askerLogin"][:7], row["question"], row["ok"]) for row in reversed(log["recent"])]
            assert told == [("erased-", "", True), ("erased-", "", True), ("owner", "kept words", True)]
            assert any("kept words" in str(value) for table, value in values(home) if table == "agents_event")


def values(home: HubStorage) -> list[tuple[str, Any]]:
    with closing(_open(home)) as database:
        named = (
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            if home.is_grown
            else "SELECT name FROM sqlite_master WHERE type = 'table'"
        )
        tables = [row[0] for row in database.execute(named).fetchall()]
        return [
            (table, value)
            for table in tables
            for row in database.execute(f'SELECT * FROM "{table}"').fetchall()
            for value in row
        ]


def _open(home: HubStorage) -> Any:
    if home.is_grown:
        return psycopg.connect(home.env["DATABASE_URL"])
    return sqlite3.connect(home.folder / "hub.sqlite3")
