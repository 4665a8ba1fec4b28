"""A hub as it is run when it has outgrown one process."""

from collections.abc import Iterator

import pytest

from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.v1.caller import Caller


def callers(hub: HubProcess, handle: str) -> list[Caller]:
    """Alice, at each process."""
    return [Caller(url, handle, hub.mint("alice", "session")) for url in hub.urls]


@pytest.fixture(scope="package")
def worked_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """Two web processes and a Celery worker on PostgreSQL and Redis; webhooks may go to this machine."""
    hub = HubProcess.start(
        make_storage("grown"), processes=2, worker=True, WEBHOOK_ALLOW_PRIVATE="1", REPLY_WAIT_S=30
    )
    yield hub
    hub.stop()
