"""No new circle of imports between the rooms of a package; `python -m lab.measure` counts what it says it counts.

Take a room out of KNOWN when its circle is opened; never put one in.
"""

import pytest

from lab import measure
from lab.measure import PRODUCT, Module, find_circles, read_modules

KNOWN = {
    "": ["agents agnt connect"],
    "a2a_bridge": ["cards dialects errors pushes requests tasks versions", "pages reference"],
    "accounts": [
        "api authn browser middleware models oauth passkeys quotas rest sealing settings signing throttle tokens"
    ],
    "gateway": ["connections handlers health letters messages sessions team triad"],
    "hub": ["descriptions docs"],
}


def test_no_circle_of_rooms_is_new_or_larger() -> None:
    known = {(package, frozenset(one.split())) for package, circles in KNOWN.items() for one in circles}
    new = [
        f"{package or 'the product'}: {circle}"
        for package, circles in find_circles(read_modules(PRODUCT)).items()
        for circle in circles
        if not any(package == where and set(circle.split()) <= rooms for where, rooms in known)
    ]
    assert not new


def test_rooms_that_import_each_other_are_a_circle_of_their_package() -> None:
    modules = [
        Module("kit/a/one.py", "from kit.b import two\n"),
        Module("kit/a/other.py", "import kit.c\n"),
        Module("kit/b/two.py", "def late():\n    from kit.c import x\n"),
        Module("kit/c.py", "from kit.a.one import y\n"),
        Module("kit/d.py", "from kit.c import x\n"),
        Module("hub/e.py", "import kit.d\n"),
    ]
    assert find_circles(modules) == {"kit": ["a b c"]}


def test_a_package_may_name_its_own_rooms_and_they_may_name_it() -> None:
    modules = [
        Module("kit/__init__.py", "from kit.a import x\n"),
        Module("kit/a.py", "from kit import LIMIT\nfrom kit import b\n"),
        Module("kit/b.py", "import kit\n"),
    ]
    assert find_circles(modules) == {}


@pytest.mark.deep
@pytest.mark.slow
def test_a_request_is_counted_from_socket_to_socket() -> None:
    figures = {one.name: one.names for one in measure.running_figures()}
    for kind, wanted in [
        ("an ask", {"hub", "a2a_bridge", "accounts", "agents", "kit"}),
        ("a PATCH of an agent", {"hub", "accounts", "agents", "kit"}),
        ("a gateway message", {"hub", "gateway", "agents", "kit"}),
    ]:
        modules = figures[f"modules of {kind}, from socket to socket"]
        assert wanted <= {path.split("/")[0] for path in modules}
