"""A process that is stopped for a while counts as dead; when it continues, it changes no end of its turns."""

import asyncio
from contextlib import ExitStack, closing, suppress
from typing import Any

import psycopg
import pytest

from hub.postgresql import connection_settings
from lab.agents import Echo, Held, online
from lab.callers import call, failed_text, get_task, inbound, question, reply_text, send
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually, on_hub

DIED = "the hub stopped before the agent answered"
ENDED_WITHIN_S = on_hub(45.0, at_least_s=25.0)
ANSWERED_WITHIN_S = 30.0
LOCK_SESSIONS = "SELECT id FROM agents_session FOR UPDATE"

pytestmark = [pytest.mark.slow, pytest.mark.distributed]


@pytest.mark.deep
async def test_when_a_paused_process_continues_the_end_that_others_stored_stays(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    """The reply comes while the process is paused, after its turn was ended: the process finds it afterwards."""
    hub = start_hub(make_storage("grown"), processes=2, worker=True)
    alice, bob, owner = (hub.mint(login, "session") for login in ("alice", "bob", "owner"))
    async with online(hub, Held, at=1) as agent:

        async def ends() -> list[str | None]:
            log = await inbound(hub.urls[1], agent.agent["id"], owner)
            return [row["deniedReason"] for row in log["recent"] if row["question"] == "late"]

        async def is_ended() -> bool:
            return await ends() == ["process_died"]

        asking = asyncio.create_task(send(hub.urls[0], agent.handle, "late", alice))
        await agent.heard("prompt")
        with hub.programs[0].paused():
            await eventually(is_ended, "another process ended the turn", within_s=ENDED_WITHIN_S)
            agent.release.set()
            served = await send(hub.urls[1], agent.handle, "meanwhile", bob)
        task = await asking
        assert failed_text(task) == DIED
        again = await get_task(hub.urls[1], agent.handle, task["id"], alice)
        assert failed_text(again["result"]) == DIED
        assert await ends() == ["process_died"]
        assert reply_text(served) == "echo: meanwhile"

        async def is_answered() -> bool:
            task = await send(hub.urls[0], agent.handle, "afterwards", bob)
            return bool(task["status"]["state"] == "COMPLETED")

        await eventually(is_answered, "the process that was paused answers asks", within_s=ANSWERED_WITHIN_S)


@pytest.mark.parametrize("way", ["after a statement", "after a pipeline", "in a pipeline"])
async def test_a_process_that_stops_within_a_transaction_loses_its_locks(
    make_storage: MakeStorage, start_hub: StartHub, way: str
) -> None:
    """A connection with the hub's settings holds the agent's session, and sends nothing any more."""
    storage = make_storage("grown")
    hub = start_hub(storage, worker=True)
    alice, url = hub.mint("alice", "session"), storage.env["DATABASE_URL"]
    settings: Any = connection_settings(url)["OPTIONS"]
    options = {name: settings[name] for name in ("options", "application_name")}
    async with online(hub, Echo) as agent:
        with closing(psycopg.connect(url, **options)) as stopped, ExitStack() as ending:
            ending.enter_context(suppress(psycopg.OperationalError))  # the end of the pipeline finds it closed
            if way != "after a statement":
                pipeline = ending.enter_context(ExitStack())
                pipeline.enter_context(stopped.pipeline())
            stopped.execute(LOCK_SESSIONS)
            if way == "after a pipeline":
                pipeline.close()

            async def is_answered() -> bool:
                response = await call(hub.url, agent.handle, alice, "SendMessage", question("are you free?"))
                return response.status_code == 200 and "result" in response.json()

            await eventually(is_answered, "an ask is answered", within_s=ANSWERED_WITHIN_S)
