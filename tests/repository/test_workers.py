"""Tests that share a fixture of their module or package run on one worker of `make test`: it is set up once."""

import pytest


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fails where another worker set it up before."""
    if request.config.getoption("loadgroup", default=False):
        (tmp_path_factory.getbasetemp().parent / "shared").touch(exist_ok=False)


@pytest.mark.parametrize("number", range(8))
@pytest.mark.usefixtures("shared")
def test_a_shared_fixture_is_set_up_by_one_worker(number: int) -> None:
    """Spread over the workers, one of the eight would meet the file of another worker."""
