"""A hub as it is run when it has outgrown one process."""

from collections.abc import Iterator
from typing import Any

import pytest

from lab.callers import bearer, web
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.v1.caller import Caller


def callers(hub: HubProcess, handle: str) -> list[Caller]:
    """Alice, at each process."""
    return [Caller(url, handle, hub.mint("alice", "session")) for url in hub.urls]


async def rest(hub: HubProcess, verb: str, path: str, token: str, **body: Any) -> Any:
    """One REST call that succeeds; its answer."""
    async with web(hub.urls[-1]) as client:
        answer = await client.request(verb, f"/api/v1{path}", json=body or None, headers=bearer(token))
    assert answer.status_code in (200, 201, 204), answer.text
    return answer.json() if answer.content else None


@pytest.fixture(scope="package")
def worked_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """Two web processes and a Celery worker on PostgreSQL and Redis; webhooks may go to this machine."""
    hub = HubProcess.start(
        make_storage("grown"), processes=2, worker=True, WEBHOOK_ALLOW_PRIVATE="1", REPLY_WAIT_S=30
    )
    yield hub
    hub.stop()
