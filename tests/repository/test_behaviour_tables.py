"""The tables of the gateway's and of AGNT's behaviours are whole, and every test that they name is there."""

import re

from lab import ROOT

ROW = re.compile(r"^\| ([GN])(\d\d) \| \d+ \| .+? \| .+? \| ((?:`[\w/]+\.py::\w+`(?:, )?)*) *\|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
TABLES = [("gateway", "G", 75), ("agnt", "N", 58)]


def rows_of(table: str, letter: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The number of each row, and the file and the name of each of its tests."""
    rows = ROW.findall((ROOT / "docs" / "reference" / f"{table}.md").read_text())
    return [(number, TEST.findall(tests)) for found, number, tests in rows if found == letter]


def test_every_behaviour_has_its_line_and_names_tests_that_are_there() -> None:
    for table, letter, behaviours in TABLES:
        rows = rows_of(table, letter)
        assert [int(number) for number, _ in rows] == list(range(1, behaviours + 1)), table
        for number, tests in rows:
            assert tests, number
            for path, name in tests:
                assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), number
