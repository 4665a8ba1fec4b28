"""The ledger's contract needs a database of its own: a file on SQLite, as in life."""

import pytest
from django.db import connection


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SQLite in memory locks whole tables between threads and never waits."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("contracts") / "test.sqlite3")
        connection.settings_dict["OPTIONS"]["timeout"] = 0.2  # a lock that is held is held on purpose here
