"""The errors, each with its reason and what to do about it; and the tables of docs/reference/*.md as rows.

The page reads the tables that tests hold complete, and does not repeat them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from a2a_bridge.wire import errors
from agents.core.errors import REFUSALS, Denied
from agents.core.failures import FAILURES
from agents.core.reasons import EndReason

PAGES = Path(__file__).resolve().parents[3] / "docs" / "reference"
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`([^`]*)`")
NUMBER = re.compile(r"\bN\b|\b60s\b")
FILLED = re.compile(rf"owner/slug|{NUMBER.pattern}")
WORD = r"\\S+"  # as a replacement: its pattern is \S+


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


def summary(shape: Any) -> str:
    """The docstring's first paragraph as one line, without its marks of code."""
    first = (shape.__doc__ or "").split("\n\n")[0]
    return " ".join(first.split()).replace("`", "")


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


@dataclass(frozen=True, slots=True)
class ReasonShown:
    """A task that ended without an answer. `when`, `then`: what happened, and what follows, for developers.

    `entry`: of the registry. `texts`: those for programs. `pattern`: matches them, as a regular expression of
    Python and of JavaScript.
    """

    entry: EndReason
    texts: Sequence[str]
    when: str
    then: str

    @property
    def reason(self) -> str:
        """The reason for programs."""
        return self.entry.reason

    @property
    def text(self) -> str:
        """The texts as one."""
        return ", or ".join(self.texts)

    @property
    def pattern(self) -> str:
        """Knows the texts with their numbers and names filled in."""
        return "|".join(f"^{FILLED.sub(WORD, re.escape(text))}$" for text in self.texts)

    @property
    def has_number(self) -> bool:
        """True if the text has a number or a duration, which no explanation has."""
        return NUMBER.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class Code:
    """A JSON-RPC error, on one HTTP status; one code may have several. `name` is the constant's."""

    code: int
    name: str
    http: str
    when: str
    again: str


class Placeholders:
    """A refusal in which each value is N."""

    def __getattr__(self, name: str) -> str:
        return "N"


@cache
def codes() -> list[Code]:
    """The errors of requests that are not sound."""
    told = [(int(row[0]), row) for row in rows("errors.md", "JSON-RPC errors")]
    if missing := errors.NAMES.keys() - {code for code, _ in told}:
        raise LookupError(f"docs/reference/errors.md has no line on {sorted(missing)}")
    return [Code(code, errors.NAMES[code], row[2], row[3], row[4]) for code, row in told]


@cache
def refusals() -> list[ReasonShown]:
    """The refusals of admission: nothing was sent to the agent."""
    return [ReasonShown(one.entry, texts_of(one), unlinked(summary(one)), one.entry.advice) for one in REFUSALS]


def texts_of(denied: type[Denied]) -> list[str]:
    """The texts of a refusal with placeholders for its values."""
    return [text.format(agent="agent @owner/slug", denied=Placeholders()) for text in denied.entry.texts]


@cache
def failures() -> list[ReasonShown]:
    """The questions that were admitted and got no answer."""
    return [
        ReasonShown(one, [errors.failure_text(one.reason, 60)], unlinked(one.when), one.remains)
        for one in FAILURES.values()
    ]


def explanations() -> Mapping[str, Any]:
    """The explanations for the page's script: errors by their code, and refusals and failures by the text of their
    task.
    """
    known = [
        {
            "code": one.code,
            "http": one.http,
            "name": one.name,
            "when": plain(one.when),
            "again": plain(one.again),
        }
        for one in codes()
    ]
    ends = [
        {
            "pattern": one.pattern,
            "reason": one.reason,
            "label": one.entry.label,
            "caller": one.entry.caller,
            "advice": one.entry.advice,
            "counted": one.entry.counted,
            "isFault": one.entry.is_fault,
            "hasNumber": one.has_number,
            "wasSent": one.entry.is_counted is not None,
        }
        for one in (*refusals(), *failures())
    ]
    return {"codes": known, "ends": ends}
