"""The contract of pushes once more, on PostgreSQL."""

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED


def test_pushes_keep_their_contract_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 506, "-m", "deliveries", "tests/pushes")
