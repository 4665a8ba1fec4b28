"""The desk once more, on PostgreSQL."""

import pytest

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

AGAIN = [
    "tests/native/test_desk.py",
    "tests/native/test_desk_audit.py",
    "tests/native/test_desk_publishing.py",
    "tests/native/test_desk_bulk.py",
    "tests/native/test_desk_week.py",
    "tests/native/test_desk_wizard.py",
    "tests/native/test_replies.py",
]


@pytest.mark.deep
def test_the_desk_is_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 507, *AGAIN)
