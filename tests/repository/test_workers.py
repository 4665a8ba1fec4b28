"""Which tests `make test` runs, and on which worker.

Tests that share a fixture of their module or package run on one worker, so that it is set up once.
"""

import pytest

from tests.conftest import DEEP_ON_POSTGRESQL
from tests.repository.tracked import ROOT


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fails where another worker set it up before."""
    if request.config.getoption("loadgroup", default=False):
        (tmp_path_factory.getbasetemp().parent / "shared").touch(exist_ok=False)


@pytest.mark.parametrize("number", range(8))
@pytest.mark.usefixtures("shared")
def test_a_shared_fixture_is_set_up_by_one_worker(number: int) -> None:
    """Spread over the workers, one of the eight would meet the file of another worker."""


def test_the_files_that_are_deep_on_postgresql_exist() -> None:
    missing = [name for name in sorted(DEEP_ON_POSTGRESQL) if not (ROOT / "tests" / name).exists()]
    assert not missing
