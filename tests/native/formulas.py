"""What spreadsheets take for formulas in a CSV file."""

import csv
import io

SEPARATORS = (",", ";", "\t")  # of the lists in different languages
SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def find_formulas(text: str) -> list[str]:
    """The cells of a file that are formulas for a spreadsheet of some language; numbers are none."""
    found = []
    for separator in SEPARATORS:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            found += [cell for cell in row if _begins(cell) and not _is_number(cell)]
    return found


def _begins(cell: str) -> bool:
    seen = "".join(one for one in cell if one.isprintable() and one not in ' "')
    return seen.startswith(SIGNS)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
