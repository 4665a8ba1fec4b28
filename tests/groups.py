"""On which worker of `pytest -n` a test runs, and when.

Tests that share a running hub, or a fixture of their package or module, run on one worker, which sets it up once.
The folders of `FIRST` are one group each, and start first: else the longest group runs alone at the end. The
others follow, the longest first, as far as the shares of `tests/README.md` tell.

`--dist loadgroup` reads a test's group from the end of its id. pytest-xdist 3.8 does not write the group there for
pytest 9.2 or later, and then spreads every group over all workers.
"""

from collections import Counter, defaultdict
from collections.abc import Generator, Sequence

import pytest

from tests.processor_time import read_shares

HUBS = {
    *("hub", "embedded_hub", "short_wait_hub", "two_process_hub", "sending_hub"),
    *("site", "short_wait_site", "signin_hub"),
}
EVERY_PAGE = "browser, every page"  # the half of `browser` that visits all pages
FIRST = (EVERY_PAGE, "browser", "sdks", "faults")
OF_EVERY_PAGE = {
    *("test_every_page.py", "test_injection_everywhere.py", "test_layout.py", "test_live_pages.py"),
    *("test_hostile_artifacts.py", "test_hostile_files.py"),
}
UNKNOWN_S = 10  # of a folder without a share
GROUP = pytest.StashKey[str]()  # what a test shares with others


def pytest_configure(config: pytest.Config) -> None:
    """pytest-xdist starts the groups in the order of the tests, not those with the most tests first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Write the group behind the id of each test, and put the groups in order; the last to change the tests."""
    if not config.getoption("loadgroup", default=False):
        return
    for item in items:
        if isinstance(item, pytest.Function) and (group := group_of(item)):
            item.stash[GROUP] = group
            item._id = type(item.id).parse(f"{item.nodeid}@{group}")
    items[:] = [items[index] for index in in_order([(item.nodeid, item.stash.get(GROUP, "")) for item in items])]


def group_of(test: pytest.Function) -> str:
    """The group of tests that share something: a folder, a fixture of its package or module, or a hub of all."""
    if (folder := folder_of(test.nodeid)) in FIRST:
        return EVERY_PAGE if test.path.name in OF_EVERY_PAGE else folder
    parameters = test.callspec.params if hasattr(test, "callspec") else {}
    hubs = []
    for name in test.fixturenames:
        found = test._fixtureinfo.name2fixturedefs.get(name, ())
        if found and found[-1].scope in ("package", "module") and found[-1].baseid.startswith("tests"):
            where = found[-1].baseid if found[-1].scope == "package" else test.nodeid.partition("::")[0]
            return f"{where} {name} {test.callspec.indices.get(name, 0) if parameters else 0}"
        if found and found[-1].scope == "session" and name in HUBS:
            hubs.append(f"hub {name} {parameters.get(name, '')}")
    return hubs[0] if hubs else ""


def folder_of(nodeid: str) -> str:
    """The folder of `tests/`."""
    path = nodeid.partition("::")[0]
    return path.split("/")[1] if path.count("/") > 1 else ""


def in_order(tests: Sequence[tuple[str, str]]) -> list[int]:
    """In which order tests, each with its id and group, start: the numbers of the tests.

    The tests of a group stand together, and those of a file within it: the fixtures of a module are set up once.
    """
    shares, counts = read_shares(), Counter(folder_of(nodeid) for nodeid, _ in tests)
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    seconds: defaultdict[str, float] = defaultdict(float)
    begins: dict[tuple[str, str], int] = {}  # the number of the first test of a group, and of a file in a group
    places = []
    for number, (nodeid, group) in enumerate(tests):
        folder, scope, file = folder_of(nodeid), group or nodeid, nodeid.partition("::")[0]
        seconds[scope] += shares.get(folder, UNKNOWN_S) / counts[folder]
        places.append(
            (scope, begins.setdefault((scope, ""), number), begins.setdefault((scope, file), number), number)
        )
    places.sort(key=lambda place: (ranks.get(place[0], len(ranks)), -seconds[place[0]], *place[1:]))
    return [number for *_, number in places]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """End the hub of all that a worker's tests share after its last test: an idle hub takes processor time."""
    yield
    group = item.stash.get(GROUP, "")
    is_last = nextitem is not None and group != nextitem.stash.get(GROUP, "")
    if is_last and group.startswith(("hub ", *FIRST)) and isinstance(item, pytest.Function):
        for name in HUBS:
            for fixture in item.session._fixturemanager.getfixturedefs(name, item) or ():
                fixture.finish(item._request)  # type: ignore[arg-type]  # a request is all that it reads
