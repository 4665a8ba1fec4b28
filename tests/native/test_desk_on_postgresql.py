"""The desk once more, on PostgreSQL."""

import pytest

from lab.homes import GrownHomes
from tests.nested import pass_on_postgresql

AGAIN = [
    "tests/native/test_desk.py",
    "tests/native/test_desk_audit.py",
    "tests/native/test_desk_publishing.py",
    "tests/native/test_desk_wizard.py",
]


@pytest.mark.deep
@pytest.mark.grown
@pytest.mark.slow
def test_the_desk_is_the_same_on_postgresql(grown_homes: GrownHomes) -> None:
    pass_on_postgresql(grown_homes, 507, *AGAIN)
