"""Two people, and a hub that may deliver on this machine."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.native import conftest as people

alice, bob, staff = people.alice, people.bob, people.staff


@pytest.fixture(autouse=True)
def _own_network(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = True


@pytest.fixture(autouse=True)
def _no_sender_outlives_its_test(db: None) -> Iterator[None]:
    """One that waits for a slow receiver is handed over to a thread, which writes its end down when it comes."""
    yield
    for thread in threading.enumerate():
        if thread.name == "webhook":
            thread.join(20)
