"""The pages of networks once more, on PostgreSQL."""

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

AGAIN = [f"tests/agnt/test_{one}.py" for one in ("pages", "venue_pages", "key_pages")]


def test_the_pages_of_networks_are_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 529, *AGAIN)
