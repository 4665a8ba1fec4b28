"""Tables of docs/reference/*.md that are made from declarations; the text around them is written by hand."""

import re
from collections.abc import Iterable, Sequence


def fill_table(page: str, columns: Sequence[str], lines: Iterable[str]) -> str:
    """The text of a page in which the one table with these columns has these lines.

    Raises:
        ValueError: the page has no such table.
    """
    head = f"{table_line(columns)}|{'---|' * len(columns)}\n"
    before, found, after = page.partition(head)
    if not found:
        raise ValueError(f"the page has no table with the columns {', '.join(columns)}")
    return before + head + "".join(lines) + re.sub(r"\A(?:\|.*\n)*", "", after)


def table_line(cells: Iterable[str]) -> str:
    """The line of a table."""
    return f"| {' | '.join(cells)} |\n"
