"""The properties that answers are expected to have: which expectations are sound, and whether an answer is as
expected.

Expectations come from owners and answers from agents, so every check is bounded: RE2 takes time that grows with
the text alone, and JSON Schemas are checked by `kit.json_schemas`.
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
MAX_PATTERN_BYTES = 1_048_576  # of memory, for the automaton of an expression
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
            found = _compile(expectation).search(answer) is not None
            return AnswerVerdict(found, "" if found else "the answer does not match the expression")
        return _check_schema(_read_schema(expectation), answer)
    except BadExpectation as bad:  # a later version of the hub may refuse what was stored
        return AnswerVerdict(None, str(bad))


def read_judgement(reply: str) -> AnswerVerdict:
    """The verdict of a judge's reply, which begins with PASS or FAIL; what follows is the reason."""
    found = _VERDICT.match(reply)
    if found is None:
        return AnswerVerdict(None, f"the judge’s reply begins with neither {PASS} nor {FAIL}")
    return AnswerVerdict(found.group(1) == PASS, reply[found.end() :].strip())


def _compile(expression: str) -> Any:
    options = re2.Options()
    options.log_errors, options.max_mem = False, MAX_PATTERN_BYTES
    try:
        return re2.compile(expression, options)
    except re2.error as wrong:
        said = wrong.args[0] if wrong.args else ""
        why = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
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
