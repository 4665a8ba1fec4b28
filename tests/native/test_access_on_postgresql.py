"""Access, administration, pages and cards once more, on PostgreSQL."""

import pytest

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

PARTS = {  # each under 20 s; a Redis number of its own
    "access-and-administration": (503, ["test_access.py", "test_rest_admin.py"]),
    "agents-and-signing": (509, ["test_rest_agents.py", "test_rest_directory.py", "test_signing.py"]),
    "pages-and-catalogs": (510, ["test_directory_page.py", "test_agent_page.py", "test_catalog.py"]),
}


@pytest.mark.deep
@pytest.mark.parametrize("part", PARTS)
def test_access_and_administration_are_the_same_on_postgresql(
    distributed_storages: DistributedStorages, part: str
) -> None:
    redis, names = PARTS[part]
    pass_on_postgresql(distributed_storages, redis, *(f"tests/native/{name}" for name in names))
