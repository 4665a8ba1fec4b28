"""For tests of the rows: two people, and a hub that may send on this machine."""

from typing import Any

import pytest

from tests.native.rows import Person, person


@pytest.fixture(autouse=True)
def _own_network(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = True


@pytest.fixture
def alice(db: None) -> Person:
    """A caller."""
    return person("alice")
