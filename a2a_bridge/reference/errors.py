"""What can go wrong, each with its reason and what to do about it."""

import re
from dataclasses import dataclass
from functools import cache

from a2a_bridge import errors
from a2a_bridge.reference import lines
from a2a_bridge.reference.shapes import summary
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
