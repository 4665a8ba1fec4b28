"""The contract of pushes once more, on PostgreSQL."""

import pytest

from lab.hub_storage import DistributedStorages
from tests.nested import pass_on_postgresql


@pytest.mark.distributed
@pytest.mark.slow
def test_pushes_keep_their_contract_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 506, "-m", "deliveries", "tests/pushes")
