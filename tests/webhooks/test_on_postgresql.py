"""The contract of webhooks once more, on PostgreSQL."""

import pytest

from lab.homes import GrownHomes
from tests.nested import pass_on_postgresql


@pytest.mark.grown
@pytest.mark.slow
def test_webhooks_keep_their_contract_on_postgresql(grown_homes: GrownHomes) -> None:
    pass_on_postgresql(grown_homes, 505, "-m", "deliveries", "tests/webhooks")
