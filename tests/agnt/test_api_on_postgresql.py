"""The REST of networks and their pages in the admin once more, on PostgreSQL."""

import pytest

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = [*NESTED, pytest.mark.deep]

PARTS = {  # a Redis number of its own
    "venues": (527, ["test_api_venues.py", "test_api_venue_files.py"]),
    "keys-and-bookings": (528, ["test_api_keys.py", "test_api_network.py", "test_admin.py"]),
}


@pytest.mark.parametrize("part", PARTS)
def test_the_rest_of_networks_is_the_same_on_postgresql(
    distributed_storages: DistributedStorages, part: str
) -> None:
    redis, names = PARTS[part]
    pass_on_postgresql(distributed_storages, redis, *(f"tests/agnt/{name}" for name in names))
