"""The stored breakers once more, on PostgreSQL."""

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED


def test_breakers_are_shared_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 499, "tests/agnt/test_breakers.py")
