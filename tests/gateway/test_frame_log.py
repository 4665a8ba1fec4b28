"""The audit of frames: a record for each, without content, also when the writer cannot keep up."""

import asyncio
import time
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from accounts.models import User
from gateway import jobs
from gateway.jobs import forget_frames
from gateway.models import FrameRecord, TeamPolicy
from gateway.service import frame_log
from gateway.service.frame_log import FrameLog, begin_note
from kit.async_db import db_call
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, owner_of
from tests.native.rows import person

SECRET_WORD = "canaryword"


async def read_log(hub: HubProcess, login: str, path: str = "live", **query: object) -> list[Json]:
    """The audit over REST."""
    async with web(hub.url) as client:
        answer = await client.get(f"/api/a2a/{path}", params={**query}, headers=bearer(hub.mint(login, "session")))
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])


async def wait_for(hub: HubProcess, login: str, count: int, **query: object) -> list[Json]:
    """The records, newest first, once there are so many."""
    found: list[Json] = []

    async def are_there() -> bool:
        found[:] = await read_log(hub, login, "history", limit=500, **query)
        return len(found) >= count

    await eventually(are_there, f"{count} records")
    return found


@pytest.mark.slow
@pytest.mark.distributed
async def test_frames_are_recorded_on_postgresql(make_storage: MakeStorage) -> None:
    hub = HubProcess.start(make_storage("grown"), processes=1, GATEWAY=1)
    try:
        async with EchoSeat(hub.url, hub.mint("audited", "channel")) as alpha:
            await alpha.find("auth-response")
            await alpha.send("discovery", {"action": "list"}, **{"from": "alpha"})
            await alpha.find("discovery")
            [found] = await wait_for(hub, "audited", 1)
        assert (found["source"], found["type"]) == ("alpha", "discovery")
    finally:
        hub.stop()


async def test_each_frame_has_a_record_without_its_content(embedded_hub: HubProcess) -> None:
    login = "audited"
    async with EchoSeat(embedded_hub.url, embedded_hub.mint(login, "channel")) as alpha:
        await alpha.find("auth-response")
        await alpha.send("discovery", {"action": "list"}, **{"from": "alpha"})
        await alpha.find("discovery")
        await alpha.send("message", {"role": "user", "content": SECRET_WORD}, agent="absent", sessionId="s-1")
        await alpha.find("error", lambda one: one["content"]["code"] == 3001)
        await alpha.socket.send(f'{{"{SECRET_WORD}')
        await alpha.find("error", lambda one: one["content"]["code"] == 2001)
        await alpha.send("vote", {"vote": SECRET_WORD}, id="v-1")
        await alpha.find("error", lambda one: one["content"]["code"] == 2005)
        await alpha.send("response", {"result": SECRET_WORD}, metadata={"correlationId": "late"})
        await alpha.send("request", {"service": "agents.get", "params": {"name": "absent"}}, id="r-1")
        await alpha.find("response")
        found = await wait_for(embedded_hub, login, 6)
    keys = ("source", "destination", "type", "outcome", "errorCode")
    assert {tuple(one[key] for key in keys) for one in found} == {
        ("alpha", "gateway", "discovery", "served", None),
        ("alpha", "absent", "message", "refused", 3001),
        ("alpha", "", "", "refused", 2001),
        ("alpha", "", "vote", "refused", 2005),
        ("alpha", "gateway", "response", "dropped", None),
        ("alpha", "gateway", "request", "refused", 3001),
    }
    assert SECRET_WORD not in str(found)
    assert {one["messageId"] for one in found} == {None, "v-1", "r-1"}
    assert {one["sessionId"] for one in found} == {None, "s-1"}
    assert min(one["bytes"] for one in found) == len(SECRET_WORD) + 2


async def test_an_owner_filters_the_audit_and_others_see_none_of_it(embedded_hub: HubProcess) -> None:
    login = "audit-filtered"
    async with owner_of(embedded_hub, login) as client:
        for number in range(3):
            await client.send("message", {"role": "user", "content": "x"}, agent="absent", id=f"m-{number}")
            await client.send("subscribe", {"channel": "agent:status"}, id=f"s-{number}")
        await wait_for(embedded_hub, login, 6)
    messages = await read_log(embedded_hub, login, "history", type="message")
    assert {one["messageId"] for one in messages} == {"m-0", "m-1", "m-2"}
    assert len(await read_log(embedded_hub, login, "history", **{"from": login, "to": "absent"})) == 3
    assert await read_log(embedded_hub, login, "history", **{"from": "alpha"}) == []
    assert len(await read_log(embedded_hub, login, "history", limit=2, offset=5)) == 1
    newest = await read_log(embedded_hub, login, "live", limit=1)
    since = await read_log(embedded_hub, login, "live", since=newest[0]["at"])
    assert newest[0] in since
    assert await read_log(embedded_hub, login, "live", since=int((time.time() + 3600) * 1000)) == []
    assert await read_log(embedded_hub, login, "history", until="2020-01-01") == []
    assert await read_log(embedded_hub, "unaudited", "history") == []


async def test_a_query_that_is_not_sound_is_400(embedded_hub: HubProcess) -> None:
    async with web(embedded_hub.url, headers=bearer(embedded_hub.mint("audited", "session"))) as client:
        limits = ("live?limit=0", "live?limit=201", "history?limit=501")
        for query in (*limits, "history?since=soon", "history?type=no"):
            assert (await client.get(f"/api/a2a/{query}")).status_code == 400, query


class Writer:
    """A store for a log in place of the database: as slow, or as absent, as the test wants."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.failures = 0
        self.failure: type[Exception] = OperationalError
        self.is_open = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.log = FrameLog(self.insert, retry_s=0.01)

    def insert(self, records: Any) -> None:
        """Write records, when the test lets it."""
        asyncio.run_coroutine_threadsafe(self.is_open.wait(), self.loop).result(15)
        if self.failures:
            self.failures -= 1
            raise self.failure
        self.batches.append(len(records))


def put(log: FrameLog, number: int, owner_id: int = 1) -> None:
    note = begin_note(log, time.monotonic, 10)
    note.owner_id = owner_id
    note.message_id = str(number)
    note.finish()
    note.finish()


async def test_clients_wait_while_the_writer_cannot_keep_up_and_nothing_is_lost() -> None:
    writer = Writer()
    log = writer.log
    put(log, 0)
    await asyncio.sleep(0)  # the writer has the first one now
    for number in range(1, frame_log.MAX_WAITING):
        await asyncio.wait_for(log.wait_for_room(), 15)
        put(log, number)
    waiting = asyncio.create_task(log.wait_for_room())
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    writer.is_open.set()
    await asyncio.wait_for(waiting, 15)
    await log.close()
    assert sum(writer.batches) == frame_log.MAX_WAITING
    assert max(writer.batches) <= frame_log.AT_ONCE


@pytest.mark.parametrize("failure", [OperationalError, InterfaceError])
async def test_records_are_kept_while_the_database_is_away(failure: type[Exception]) -> None:
    writer = Writer()
    log = writer.log
    writer.failure = failure
    writer.is_open.set()
    writer.failures = 3
    put(log, 0)
    put(log, 1)
    await asyncio.wait_for(log.close(), 15)
    assert sum(writer.batches) == 2


@pytest.mark.django_db(transaction=True)
async def test_a_team_that_is_gone_costs_no_other_its_records() -> None:
    owner = await db_call(lambda: person("kept-team").user)()
    log = FrameLog()
    for owner_id in (owner.pk, 10**9, owner.pk):
        put(log, 0, owner_id)
    await log.close()
    assert await db_call(FrameRecord.objects.count)() == 2


def _record(owner: User, days: float) -> FrameRecord:
    at = timezone.now() - timezone.timedelta(days=days)
    return FrameRecord(owner=owner, at=at, source="alpha", type="ping", outcome="served", bytes=1)


@pytest.mark.django_db
def test_records_go_when_their_team_keeps_them_no_longer() -> None:
    default, chosen = person("default-team").user, person("chosen-team").user
    TeamPolicy.objects.create(owner=chosen, frames_kept_days=30)
    rows = [_record(owner, days) for owner in (default, chosen) for days in (1, 6.9, 7.1, 29, 31)]
    FrameRecord.objects.bulk_create(rows)
    assert forget_frames() == 4
    assert FrameRecord.objects.filter(owner=default).count() == 2
    assert FrameRecord.objects.filter(owner=chosen).count() == 4
    assert forget_frames() == 0


@pytest.mark.django_db
def test_a_team_keeps_the_newest_of_too_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MAX_FRAMES", 3)
    owner, other = person("chatty-team").user, person("quiet-team").user
    FrameRecord.objects.bulk_create([_record(owner, days) for days in (1, 2, 3, 4, 5)] + [_record(other, 5)])
    assert forget_frames() == 2
    kept = FrameRecord.objects.filter(owner=owner).order_by("at").values_list("at", flat=True)
    assert (timezone.now() - kept[0]).days == 3
    assert (len(kept), FrameRecord.objects.filter(owner=other).count()) == (3, 1)
