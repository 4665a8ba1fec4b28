"""The properties that answers are expected to have: which expectations are sound, and whether an answer is as
expected.

Expectations come from owners and answers from agents, so every check is bounded. RE2 takes time that grows with
the text times the size of the expression's program: both have limits, at which a check takes half a second. JSON
Schemas are checked by `kit.json_schemas`.
"""

import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import re2

from evaluations.models import SavedQuestion
from kit import strict_json

Property = SavedQuestion.Property
PASS, FAIL = "PASS", "FAIL"
MAX_EXPRESSION_CHARS = 1_000
MAX_EXPRESSION_STEPS = 1_500  # of the program that RE2 makes of an expression
MAX_MATCHED_BYTES = 65_536  # of an answer
MAX_PATTERN_BYTES = 1_048_576  # of memory, for the automaton of an expression
TOO_LARGE = (
    "the expression is too large: use smaller repetitions such as {0,50}, fewer of them one in another, and fewer"
    " classes such as \\pL"
)
_SCHEMAS = "kit.json_schemas"  # imports `jsonschema`, which is large
_VERDICT = re.compile(r"[\s*_`#>]*(PASS|FAIL)\b[\s*_`:.,–-]*", re.ASCII)


class BadExpectation(ValueError):
    """No answer can be checked by the expectation; the text says why."""


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """Whether an answer is as expected; None: nothing can be said. `detail`: why, for the owner."""

    passes: bool | None
    detail: str = ""


def check_expectation(expected: str, expectation: str) -> None:
    """Check an expectation before it is stored.

    Raises:
        BadExpectation
    """
    if expected == Property.MATCHES:
        _compile(expectation)
    elif expected == Property.JSON_SCHEMA:
        _read_schema(expectation)


def check_answer(expected: str, expectation: str, answer: str) -> AnswerVerdict:
    """Compare an answer with an expectation that needs no judge."""
    if expected == Property.CONTAINS:
        found = expectation.casefold() in answer.casefold()
        return AnswerVerdict(found, "" if found else "the answer does not contain the text")
    try:
        if expected == Property.MATCHES:
            return _match(_compile(expectation), answer)
        return _check_schema(_read_schema(expectation), answer)
    except BadExpectation as bad:  # a later version of the hub may refuse what was stored
        return AnswerVerdict(None, str(bad))


def read_judgement(reply: str) -> AnswerVerdict:
    """The verdict of a judge's reply, which begins with PASS or FAIL; what follows is the reason."""
    found = _VERDICT.match(reply)
    if found is None:
        return AnswerVerdict(None, f"the judge’s reply begins with neither {PASS} nor {FAIL}")
    return AnswerVerdict(found.group(1) == PASS, reply[found.end() :].strip())


def _match(compiled: Any, answer: str) -> AnswerVerdict:
    whole = answer[: MAX_MATCHED_BYTES + 1].encode(errors="replace")
    looked_at = whole[:MAX_MATCHED_BYTES].decode(errors="ignore")  # the last character may be cut
    if compiled.search(looked_at) is not None:
        return AnswerVerdict(True)
    which = "the first 64 KiB of the answer do" if len(whole) > MAX_MATCHED_BYTES else "the answer does"
    return AnswerVerdict(False, f"{which} not match the expression")


def _compile(expression: str) -> Any:
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise BadExpectation(f"want a regular expression of at most {MAX_EXPRESSION_CHARS:,} characters")
    options = re2.Options()
    options.log_errors, options.max_mem = False, MAX_PATTERN_BYTES
    options.never_capture = True  # the work of a search would grow with the number of groups, too
    try:
        compiled = re2.compile(expression, options)
        if compiled.programsize > MAX_EXPRESSION_STEPS:
            raise BadExpectation(TOO_LARGE)
        return compiled
    except re2.error as wrong:
        said = wrong.args[0] if wrong.args else ""
        why = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        if "too large" in why:
            raise BadExpectation(TOO_LARGE) from None
        raise BadExpectation(f"want a regular expression in the syntax of RE2: {why[:200]}") from None


def _read_schema(text: str) -> dict[str, Any]:
    try:
        schema = strict_json.read(text)
    except strict_json.UnreadableText as wrong:
        raise BadExpectation(f"want a JSON Schema: {wrong}") from None
    if not isinstance(schema, dict):
        raise BadExpectation("want a JSON Schema that is an object")
    schemas = import_module(_SCHEMAS)
    if unchecked := schemas.find_unchecked(schema):
        raise BadExpectation(f"want a JSON Schema without {unchecked}: checking it could take without end")
    if flaw := schemas.find_schema_flaw(schema):
        raise BadExpectation(f"want a JSON Schema: {flaw}")
    return schema


def _check_schema(schema: dict[str, Any], answer: str) -> AnswerVerdict:
    schemas = import_module(_SCHEMAS)
    try:
        value = strict_json.read(strict_json.bare_json(answer))
    except strict_json.UnreadableText as wrong:
        return AnswerVerdict(False, f"the answer is not JSON alone: {wrong}")
    try:
        flaw: str = schemas.find_flaw(value, schema)
    except schemas.Uncheckable as wrong:
        return AnswerVerdict(None, f"the schema: {wrong}")
    return AnswerVerdict(not flaw, flaw)
