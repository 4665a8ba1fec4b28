"""The ledger's contract once more, on PostgreSQL."""

import pytest

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

TASK_STORE = ["tests/contracts/test_task_store.py", "tests/contracts/test_task_store_journal.py"]
ASKS = [
    f"tests/contracts/test_{one}.py" for one in ("admission", "claims_model", "queueing", "settling", "reaper")
]
PARTS = {  # each under 20 s; a Redis number of its own
    "task-store": (504, TASK_STORE),
    "asks": (511, ASKS),
    "the-rest": (508, ["tests/contracts", *(f"--ignore={one}" for one in (*TASK_STORE, *ASKS))]),
}


@pytest.mark.parametrize("part", PARTS)
def test_the_ledger_keeps_its_contract_on_postgresql(distributed_storages: DistributedStorages, part: str) -> None:
    redis, selection = PARTS[part]
    pass_on_postgresql(distributed_storages, redis, "-m", "ledger", *selection)
