"""The errors, each with its reason and what to do about it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from a2a_bridge.surface.reference import lines
from a2a_bridge.surface.reference.shapes import summary
from a2a_bridge.wire import errors
from agents.core.errors import REFUSALS, Denied
from agents.core.failures import FAILURES
from agents.core.reasons import Reason

NUMBER = re.compile(r"\bN\b|\b60s\b")
FILLED = re.compile(rf"owner/slug|{NUMBER.pattern}")
WORD = r"\\S+"  # as a replacement: its pattern is \S+


@dataclass(frozen=True, slots=True)
class ReasonShown:
    """A task that ended without an answer. `when`, `then`: what happened, and what follows, for developers.

    `entry`: of the registry. `texts`: those for programs. `pattern`: matches them, as a regular expression of
    Python and of JavaScript.
    """

    entry: Reason
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
        """Whether the text has a number or a duration, which no explanation has."""
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
    told = [(int(row[0]), row) for row in lines.rows("errors.md", "JSON-RPC errors")]
    if missing := errors.NAMES.keys() - {code for code, _ in told}:
        raise LookupError(f"docs/reference/errors.md has no line on {sorted(missing)}")
    return [Code(code, errors.NAMES[code], row[2], row[3], row[4]) for code, row in told]


@cache
def refusals() -> list[ReasonShown]:
    """The refusals of admission: nothing was sent to the agent."""
    return [
        ReasonShown(one.entry, texts_of(one), lines.unlinked(summary(one)), one.entry.advice) for one in REFUSALS
    ]


def texts_of(denied: type[Denied]) -> list[str]:
    """The texts of a refusal with placeholders for its values."""
    return [text.format(agent="agent @owner/slug", denied=Placeholders()) for text in denied.entry.texts]


@cache
def failures() -> list[ReasonShown]:
    """The questions that were admitted and got no answer."""
    return [
        ReasonShown(one, [errors.failure_text(one.reason, 60)], lines.unlinked(one.when), one.remains)
        for one in FAILURES.values()
    ]


def explanations() -> Mapping[str, Any]:
    """For the page's script: errors by their code, and refusals and failures by the text of their task."""
    known = [
        {
            "code": one.code,
            "http": one.http,
            "name": one.name,
            "when": lines.plain(one.when),
            "again": lines.plain(one.again),
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
