"""Two people, and a hub that may deliver on this machine."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.native.rows import Person, person


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


@pytest.fixture
def alice(db: None) -> Person:
    """A subscriber."""
    return person("alice")


@pytest.fixture
def bob(db: None) -> Person:
    """Another user."""
    return person("bob")


@pytest.fixture
def staff(db: None) -> Person:
    """A member of the staff."""
    return person("root", is_staff=True)
