"""What can go wrong, each with its reason and what to do about it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from a2a_bridge.surface.reference import lines
from a2a_bridge.surface.reference.shapes import summary
from a2a_bridge.wire import errors
from agents.core.explanations import DENIED, FAILED, Explanation
from agents.models.choices import Failure
from kit import jsonrpc

NUMBER = re.compile(r"\bN\b|\b60s\b")
FILLED = re.compile(rf"owner/slug|{NUMBER.pattern}")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A task that ended without an answer. `when`, `then`: what happened, and what follows, for developers.

    `explanation`: for people. `pattern`: matches the text, as a regular expression of Python and of JavaScript.
    """

    reason: str
    text: str
    when: str
    then: str
    explanation: Explanation

    @property
    def pattern(self) -> str:
        """Knows the text with its numbers and names filled in."""
        return "^" + FILLED.sub(r"\\S+", re.escape(self.text)) + "$"

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


class _Filled:
    """A refusal whose every number is N."""

    def __getattr__(self, name: str) -> str:
        return "N"


@cache
def codes() -> list[Code]:
    """The errors of requests that are not sound."""
    known = _constants()
    told = [(int(row[0]), row) for row in lines.rows("errors.md", "JSON-RPC errors")]
    if missing := known.keys() - {code for code, _ in told}:
        raise LookupError(f"docs/reference/errors.md has no line on {sorted(missing)}")
    return [Code(code, known[code], row[2], row[3], row[4]) for code, row in told]


@cache
def refusals() -> list[Refusal]:
    """The refusals of admission: nothing was sent to the agent."""
    return [
        Refusal(
            denied.reason, text(_Filled(), "owner/slug"), summary(denied), DENIED[denied].advice, DENIED[denied]
        )
        for denied, text in errors.DENIED_TEXT.items()
    ]


@cache
def failures() -> list[Refusal]:
    """The questions that were admitted and got no answer."""
    told = {lines.plain(row[0]): row[2] for row in lines.rows("errors.md", "Failures")}
    return [
        Refusal(str(reason), errors.failure_text(reason, 60), told[reason], FAILED[reason].remains, FAILED[reason])
        for reason in Failure
    ]


def _constants() -> dict[int, str]:
    found = {**vars(jsonrpc), **vars(errors)}
    return {value: name for name, value in found.items() if name.isupper() and type(value) is int and value < 0}


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
            "label": one.explanation.label,
            "caller": one.explanation.caller,
            "advice": one.explanation.advice,
            "counted": one.explanation.counted,
            "isFault": one.explanation.is_fault,
            "hasNumber": one.has_number,
            "wasSent": one.explanation.is_counted is not None,
        }
        for one in (*refusals(), *failures())
    ]
    return {"codes": known, "ends": ends}
