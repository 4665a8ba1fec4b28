"""The stored breakers and the daily limit once more, on PostgreSQL."""

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

AGAIN = ["tests/agnt/test_breakers.py", "tests/agnt/test_daily_limit.py"]


def test_breakers_and_limits_are_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 499, *AGAIN)
