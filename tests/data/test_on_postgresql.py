"""The hub keeps and deletes the same rows and files on PostgreSQL as on SQLite."""

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

AGAIN = ["test_retention.py", "test_exporting.py", "test_erasing.py"]


def test_what_is_kept_and_what_goes_is_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 502, *(f"tests/data/{name}" for name in AGAIN))
