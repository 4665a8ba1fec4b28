"""CSV files in which no text begins a formula, however a spreadsheet splits their lines."""

import csv
import io
from itertools import product

import pytest

from kit.csv_text import csv_lines, unescape
from tests.attempts import Attempts
from tests.browser.vectors import VECTORS
from tests.native.formulas import find_formulas

BITS = ["=", "-", "'", '"', ";", "\t", "\n", " ", "x", "\ufeff"]


@pytest.mark.attack
def test_no_text_begins_a_formula(attempts: Attempts) -> None:
    texts = [*VECTORS, *map("".join, product(BITS, repeat=attempts.number(short=4, long=5)))]
    found = [text for text in texts if find_formulas("".join(csv_lines([["x", text, "x"], [text, "x"]])))]
    attempts.count("texts in a CSV file, read with commas, semicolons and tabs", len(texts), len(found))
    assert found == []


def test_each_text_is_the_same_again() -> None:
    texts = [*VECTORS, *map("".join, product(BITS, repeat=4))]
    [*rows] = csv.reader(io.StringIO("".join(csv_lines([[text] for text in texts]))))
    # A reader without a newline mode takes a lone carriage return for the end of a line.
    assert [unescape(row[0]) if row else "" for row in rows] == texts


def test_numbers_stay_numbers() -> None:
    assert "".join(csv_lines([[-1, 2.5, None, "-1", "a-1"]])) == "-1,2.5,,'-1,a-1\r\n"
