"""The contract of pushes once more, on PostgreSQL."""

import pytest

from lab.homes import GrownHomes
from tests.nested import pass_on_postgresql


@pytest.mark.grown
@pytest.mark.slow
def test_pushes_keep_their_contract_on_postgresql(grown_homes: GrownHomes) -> None:
    pass_on_postgresql(grown_homes, 506, "-m", "deliveries", "tests/pushes")
