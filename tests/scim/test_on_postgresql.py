"""SCIM once more, on PostgreSQL."""

import pytest

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = [*NESTED, pytest.mark.deep]


def test_scim_is_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    names = ("refusals", "lists", "requests_of_providers", "sign_in")
    pass_on_postgresql(distributed_storages, 588, *(f"tests/scim/test_{name}.py" for name in names))
