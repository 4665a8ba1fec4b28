"""For tests of the rows: two people, and a hub that may send on this machine."""

from typing import Any

import pytest
from django.db import connection

from tests.native.house import Person, person


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file, as in life: SQLite in memory locks whole tables between threads and never waits."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("pushes") / "test.sqlite3")


@pytest.fixture(autouse=True)
def _own_network(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = True


@pytest.fixture
def alice(db: None) -> Person:
    """A caller."""
    return person("alice")
