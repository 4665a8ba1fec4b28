"""Access, administration, pages, cards and the desk once more, on PostgreSQL."""

import pytest

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = [*NESTED, pytest.mark.deep]

DESK = ("desk", "desk_audit", "desk_publishing", "desk_bulk", "desk_week", "desk_wizard", "replies")
PARTS = {  # each under 20 s; a Redis number of its own
    "access-and-administration": (503, ("access", "rest_admin")),
    "the-desk": (507, DESK),
    "agents-and-signing": (509, ("rest_agents", "rest_directory", "signing")),
    "pages-and-catalogs": (510, ("directory_page", "agent_page", "catalog")),
    "one-ask": (577, ("one_ask",)),
    "shared-answers": (578, ("answer_shares", "palette")),
}


@pytest.mark.parametrize("part", PARTS)
def test_the_native_api_and_its_pages_are_the_same_on_postgresql(
    distributed_storages: DistributedStorages, part: str
) -> None:
    redis, names = PARTS[part]
    pass_on_postgresql(distributed_storages, redis, *(f"tests/native/test_{name}.py" for name in names))
