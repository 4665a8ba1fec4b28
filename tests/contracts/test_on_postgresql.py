"""The ledger's contract once more, on PostgreSQL."""

from pathlib import Path

import pytest

from lab import ROOT
from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

HERE = Path(__file__).parent
MARK = "mark.ledger"
TASK_STORE = {"test_task_store.py", "test_task_store_batches.py", "test_task_store_journal.py"}
ASKS = {f"test_{one}.py" for one in ("admission", "claims_model", "queueing", "settling", "reaper")}
OF_THE_CONTRACT = {one.name for one in HERE.glob("test_*.py") if MARK in one.read_text()} - {Path(__file__).name}
PARTS = {  # each under 20 s; a Redis number of its own
    "task-store-and-asks": (504, TASK_STORE | ASKS),
    "the-rest": (508, OF_THE_CONTRACT - TASK_STORE - ASKS),
}


@pytest.mark.parametrize("part", PARTS)
def test_the_ledger_keeps_its_contract_on_postgresql(distributed_storages: DistributedStorages, part: str) -> None:
    redis, names = PARTS[part]
    pass_on_postgresql(distributed_storages, redis, "-m", "ledger and not deep", *paths(names))


@pytest.mark.deep
def test_generated_tasks_are_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 511, "-m", "ledger and deep", *paths(TASK_STORE))


def paths(names: set[str]) -> list[str]:
    return sorted(str((HERE / name).relative_to(ROOT)) for name in names)
