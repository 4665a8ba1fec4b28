"""What can go wrong, each with its reason and what to do about it."""

import re
from dataclasses import dataclass
from functools import cache

from a2a_bridge import errors
from a2a_bridge.reference import lines
from a2a_bridge.reference.shapes import summary
from agents.core.errors import (
    Blocked,
    Busy,
    Cycle,
    Denied,
    Ended,
    Halted,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCallerCostLimit,
    OverCap,
    OverCostLimit,
    RateLimited,
    TooDeep,
    WaitAbandoned,
)
from agents.models.choices import Failure
from kit import jsonrpc

ADVICE: dict[type[Denied], str] = {
    Offline: "Its owner has to bring it back: ask another agent, or come back later.",
    Busy: "It answers one caller at a time. Try again in a few seconds.",
    OverCap: "Wait until one of your own questions is answered.",
    OverBudget: "The day's questions are used up. They come back at midnight UTC.",
    OverCallerBudget: "Your own questions to it are used up. They come back at midnight UTC.",
    OverCostLimit: "It cost as much today as its owner allows. It takes questions again at midnight UTC.",
    OverCallerCostLimit: "Your questions cost as much today as its owner allows. Ask again after midnight UTC.",
    Blocked: "Its owner decides who may ask.",
    Halted: "Its owner or the hub's administrators have to let it, or you, go on.",
    Ended: "The question for which an agent asked on was canceled or failed. Ask again.",
    WaitAbandoned: "Nothing was sent and nothing was spent. Ask again.",
    TooDeep: "Agents may pass a question on three times. Ask the last one yourself.",
    Cycle: "An agent passed the question back to one that has it already.",
    RateLimited: "Wait as long as it says: this holds over all agents.",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A FAILED task. `pattern` is a regular expression of both Python and JavaScript that knows its text."""

    reason: str
    text: str
    when: str
    advice: str

    @property
    def pattern(self) -> str:
        """Knows the text with its numbers and names filled in."""
        return "^" + re.sub(r"owner/slug|\bN\b|\b60s\b", r"\\S+", re.escape(self.text)) + "$"


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
        Refusal(denied.reason, text(_Filled(), "owner/slug"), summary(denied), ADVICE.get(denied, ""))
        for denied, text in errors.DENIED_TEXT.items()
    ]


@cache
def failures() -> list[Refusal]:
    """The questions that were admitted and got no answer."""
    told = {lines.plain(row[0]): row for row in lines.rows("errors.md", "Failures")}
    return [
        Refusal(str(reason), errors.failure_text(reason, 60), told[reason][2], _after(told[reason]))
        for reason in Failure
    ]


def _after(row: list[str]) -> str:
    counted = "It counted" if row[3] == "yes" else "It was given back"
    return f"{counted}; the claim: {row[4]}."


def _constants() -> dict[int, str]:
    found = {**vars(jsonrpc), **vars(errors)}
    return {value: name for name, value in found.items() if name.isupper() and type(value) is int and value < 0}
