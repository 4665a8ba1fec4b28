"""What is kept, what goes and what staff did, on PostgreSQL."""

import pytest

from lab.homes import GrownHomes
from tests.nested import pass_on_postgresql

AGAIN = ["test_retention.py", "test_exporting.py", "test_erasing.py", "test_acts.py"]


@pytest.mark.grown
@pytest.mark.slow
def test_what_is_kept_and_what_goes_is_the_same_on_postgresql(grown_homes: GrownHomes) -> None:
    pass_on_postgresql(grown_homes, 502, *(f"tests/data/{name}" for name in AGAIN))
