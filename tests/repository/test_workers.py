"""The tests that `make test` runs, their workers, and their order.

Tests that share a fixture of their module or package run on one worker, so that it is set up once.
"""

import pytest

from tests.conftest import DEEP_ON_POSTGRESQL
from tests.groups import EVERY_PAGE, FIRST, folder_of, in_order
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


def test_browsers_sdks_and_faults_start_first_and_then_the_longest() -> None:
    """By the shares of the README `clients` takes less time than `tenancy`, however many tests it has."""
    tests = [(f"tests/clients/test_a.py::test_{number}", "clients") for number in range(20)]
    tests += [("tests/tenancy/test_a.py::test_alone", ""), ("tests/faults/test_a.py::test_a", "faults")]
    tests += [("tests/sdks/test_a.py::test_a", "sdks"), ("tests/browser/test_a.py::test_a", "browser")]
    tests += [("tests/browser/test_every_page.py::test_a", EVERY_PAGE)]
    groups = [tests[number][1] for number in in_order(tests)]
    assert groups == [*FIRST, "", *["clients"] * 20]


def test_the_tests_of_a_group_and_of_its_files_stand_together() -> None:
    files = ["a", "b", "a", "b", "c", "a"]
    tests = [(f"tests/native/test_{file}.py::test_{number}", "native") for number, file in enumerate(files)]
    tests.insert(3, ("tests/native/test_d.py::test_alone", ""))
    ordered = [tests[number] for number in in_order(tests)]
    assert [group for _, group in ordered] == ["native"] * 6 + [""]
    assert [nodeid[18:19] for nodeid, _ in ordered] == list("aaabbcd")


def test_pytest_runs_the_tests_in_this_order(request: pytest.FixtureRequest) -> None:
    """pytest-xdist would start the groups with the most tests first."""
    assert not request.config.getoption("loadscopereorder")
    if request.config.getoption("loadgroup", default=False):
        folders = [folder_of(item.nodeid) for item in request.session.items]
        first = [folder for folder in folders if folder in FIRST]
        assert folders[: len(first)] == first


def test_the_files_that_are_deep_on_postgresql_exist() -> None:
    missing = [name for name in sorted(DEEP_ON_POSTGRESQL) if not (ROOT / "tests" / name).exists()]
    assert not missing
