"""The contract of pushes once more, on PostgreSQL."""

from pathlib import Path

import pytest

from tests.homes import GrownHomes
from tests.nested import pass_on_postgresql


@pytest.mark.grown
@pytest.mark.slow
def test_pushes_keep_their_contract_on_postgresql(grown_homes: GrownHomes, tmp_path: Path) -> None:
    pass_on_postgresql(grown_homes, tmp_path, 506, "-m", "deliveries", "tests/pushes")
