"""People of one hub's database."""

import pytest

from tests.data.house import OTHERS_WORD, WORD, owner_of_everything
from tests.native.conftest import (  # noqa: F401
    _no_collected_files,
    alice,
    bob,
    carol,
    staff,
)
from tests.native.house import Person


@pytest.fixture
def estate(bob: Person) -> Person:  # noqa: F811  that fixture
    """Somebody with everything; bob dealt with them, and so did carol, who has everything too."""
    owner_of_everything(OTHERS_WORD, bob)
    return owner_of_everything(WORD, bob)
