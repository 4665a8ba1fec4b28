"""The ledger's contract once more, on PostgreSQL."""

from pathlib import Path

import pytest

from tests.homes import GrownHomes
from tests.nested import pass_on_postgresql


@pytest.mark.grown
@pytest.mark.slow
def test_the_ledger_keeps_its_contract_on_postgresql(grown_homes: GrownHomes, tmp_path: Path) -> None:
    pass_on_postgresql(grown_homes, tmp_path, 504, "-m", "ledger", "tests/contracts")
