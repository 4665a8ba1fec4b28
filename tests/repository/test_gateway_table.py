"""The table of the gateway's behaviours is whole, and every test it names is there."""

import re

from lab import ROOT

ROW = re.compile(r"^\| G(\d\d) \| \d+ \| .+? \| (.+?) \| (?:`([\w/]+\.py)::(\w+)`)? *\|$", re.MULTILINE)
BEHAVIOURS = 77
ROWS = ROW.findall((ROOT / "docs" / "reference" / "gateway.md").read_text())


def test_every_behaviour_has_its_line() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, BEHAVIOURS + 1))


def test_what_holds_names_a_test_that_is_there() -> None:
    for number, here, path, name in ROWS:
        if path:
            assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), number
        else:
            assert here.startswith("not yet"), number
