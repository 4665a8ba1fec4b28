"""Two people, and a hub that may deliver on this machine."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from tests.native.house import Person, person


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file, as in life: SQLite in memory locks whole tables between threads and never waits."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("webhooks") / "test.sqlite3")


@pytest.fixture(autouse=True)
def _own_network(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = True
    settings.STATIC_ROOT = None


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
    """Somebody else."""
    return person("bob")


@pytest.fixture
def staff(db: None) -> Person:
    """A member of the staff."""
    return person("root", is_staff=True)
