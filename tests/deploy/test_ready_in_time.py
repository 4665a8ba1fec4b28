"""Health is answered in time, whatever the database does."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from hub.monitoring.endpoints import MonitoringEndpoints
from kit.asgi import HttpRequest
from lab.callers import web
from lab.hub_process import StartHub
from lab.hub_storage import DistributedStorages, MakeStorage
from lab.proxy import proxied
from lab.waiting import eventually

ASKS = 8
WITHIN_S = 5.0  # a silent database would hold the answer for ever


@pytest.mark.slow
@pytest.mark.distributed
async def test_a_database_that_hangs_makes_the_process_unready_in_time(
    make_storage: MakeStorage, distributed_storages: DistributedStorages, start_hub: StartHub
) -> None:
    home, server = make_storage("grown"), distributed_storages.servers.postgres_port
    with proxied(server) as way:
        url = home.env["DATABASE_URL"].replace(f":{server}/", f":{way.port}/")
        hub = start_hub(replace(home, env={**home.env, "DATABASE_URL": url}))
        async with web(hub.url) as client:
            assert (await client.get("/readyz")).json() == {"ok": True, "database": "ok"}
            way.silence()
            took = []
            for _ in range(ASKS):
                began = time.monotonic()
                answer = await client.get("/readyz")
                took.append(time.monotonic() - began)
                assert (answer.status_code, answer.json()["ok"]) == (503, False)
                assert (await client.get("/livez")).status_code == 200
            assert max(took) < WITHIN_S
            began = time.monotonic()
            assert "clawbridge_database_up 0.0" in (await client.get("/metrics")).text
            assert time.monotonic() - began < WITHIN_S
            way.heal()

            async def ready() -> bool:
                return (await client.get("/readyz")).status_code == 200

            await eventually(ready, "the process is ready again", within_s=30)


async def test_a_process_that_cannot_start_is_alive_and_not_ready() -> None:
    async def fail() -> None:
        raise ConnectionError

    watching = MonitoringEndpoints(CollectorRegistry(), "", fail)
    told: list[Any] = []

    async def send(message: Any) -> None:
        told.append(message)

    async def receive() -> Any:
        raise AssertionError

    for path in ("/readyz", "/livez"):
        scope = {"type": "http", "method": "GET", "path": path, "headers": []}
        await watching(HttpRequest(scope, receive), send)
    assert [one["status"] for one in told[::2]] == [503, 200]
    assert json.loads(told[1]["body"]) == {"ok": False, "starting": True}
    await watching.close()
