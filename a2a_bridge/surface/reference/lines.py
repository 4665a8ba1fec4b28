"""The tables of docs/reference/*.md, as rows: what tests hold complete there is read here, not written again."""

import re
from pathlib import Path

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

PAGES = Path(__file__).resolve().parents[3] / "docs" / "reference"
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`([^`]*)`")


def rows(page: str, heading: str) -> list[list[str]]:
    """The first table under a heading, a list of cells a row, without its head; links are their text."""
    text = (PAGES / page).read_text()
    _, found, after = text.partition(f"\n## {heading}\n") if heading else ("", "\n", text)
    if not found:
        raise LookupError(f"docs/reference/{page} has no heading {heading!r}")
    table: list[list[str]] = []
    for line in after.splitlines():
        if line.startswith("|"):
            table.append(_cells(line))
        elif table or line.startswith("## "):
            break
    return table[2:]


def unlinked(cell: str) -> str:
    """A cell whose links are their text."""
    return _LINK.sub(r"\1", cell)


def plain(cell: str) -> str:
    """A cell as text."""
    return _CODE.sub(r"\1", cell)


def html(cell: str) -> SafeString:
    """A cell as HTML: code is code, all else is text."""
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(cell)))  # noqa: S308  escaped before


def _cells(line: str) -> list[str]:
    parts = _CELL_EDGE.split(line.strip().strip("|"))
    return [unlinked(part).replace("\\|", "|").strip() for part in parts]
