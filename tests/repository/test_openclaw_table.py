"""The table of the 0.3 server's behaviours is whole, and every test it names is there."""

import re

from lab import ROOT

REFERENCE = ROOT / "docs" / "reference" / "openclaw-inbound.md"
DECISION = ROOT / "docs" / "adr" / "0046-version-03-by-its-reference-server.md"
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \| (?:`([\w/]+\.py)::(\w+)`|ADR) \|$", re.MULTILINE)
NUMBER = re.compile(r"\b\d{1,2}\b")
BEHAVIOURS = 62
ROWS = ROW.findall(REFERENCE.read_text())


def test_every_behaviour_has_its_line() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, BEHAVIOURS + 1))


def test_every_test_that_is_named_is_there() -> None:
    for number, _, path, name in ROWS:
        if path:
            assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), number


def test_a_test_has_the_number_of_a_behaviour_that_it_shows() -> None:
    shown = {(int(number), name) for number, _, _, name in ROWS}
    for _, _, path, name in ROWS:
        if path.startswith("tests/openclaw/"):
            assert (int(name.split("_")[1]), name) in shown


def test_whatever_differs_is_explained() -> None:
    decided = DECISION.read_text()
    explained = {int(one) for group in re.findall(r"\(\d[^)]*\)", decided) for one in NUMBER.findall(group)}
    for number, here, path, _ in ROWS:
        if not path or "(ADR)" in here:
            assert int(number) in explained, f"0046 says nothing of {number}"
