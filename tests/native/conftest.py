"""Two people, and one of the staff."""

from typing import Any

import pytest
from django.db import connection

from tests.native.house import Person, person


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file, as in life: SQLite in memory locks whole tables between threads and never waits."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("native") / "test.sqlite3")


@pytest.fixture(autouse=True)
def _no_collected_files(settings: Any) -> None:
    """Static files are found where they lie; WhiteNoise warns about a folder that is not there."""
    settings.STATIC_ROOT = None


@pytest.fixture
def alice(db: None) -> Person:
    """An owner."""
    return person("alice")


@pytest.fixture
def bob(db: None) -> Person:
    """Somebody else."""
    return person("bob")


@pytest.fixture
def staff(db: None) -> Person:
    """A member of the staff."""
    return person("root", is_staff=True)
