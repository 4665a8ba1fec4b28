"""People, and a hub process without its sockets that calls remote servers."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.native.rows import Person, person
from tests.remote.caller import Caller


@pytest.fixture
async def caller(settings: Any, transactional_db: None) -> AsyncIterator[Caller]:
    """Asks, by the real ledger and dispatcher, with servers of this machine allowed."""
    settings.REMOTE_ALLOW_PRIVATE = True
    settings.REMOTE_RETRY_S = 0.5
    caller = Caller()
    yield caller
    await caller.close()


@pytest.fixture
def alice(db: None, settings: Any) -> Person:
    """An owner on a hub that may call servers of this machine."""
    settings.REMOTE_ALLOW_PRIVATE = True
    return person("alice")
