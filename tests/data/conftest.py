"""People of one hub's database."""

import pytest

from tests.data.rows import OTHERS_WORD, WORD, owner_of_everything
from tests.native.conftest import alice, bob, carol, staff  # noqa: F401
from tests.native.rows import Person


@pytest.fixture
def full_account(bob: Person) -> Person:  # noqa: F811  that fixture
    """A user with rows in every table, whom bob and carol dealt with; carol has rows in every table too."""
    owner_of_everything(OTHERS_WORD, bob)
    return owner_of_everything(WORD, bob)
