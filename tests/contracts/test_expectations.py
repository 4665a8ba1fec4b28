"""Expectations of answers: the hub takes sound ones, and decides in bounded time which answers fit them."""

import time

import pytest

from evaluations.service.properties import (
    MAX_EXPRESSION_CHARS,
    MAX_EXPRESSION_STEPS,
    MAX_MATCHED_BYTES,
    BadExpectation,
    check_answer,
    check_expectation,
    read_judgement,
)


@pytest.mark.parametrize(
    ("expected", "expectation", "answer", "passes"),
    [
        ("contains", "NINE", "We open at nine.", True),
        ("contains", "ten", "We open at nine.", False),
        ("matches", r"^We open at \w+\.$", "We open at nine.", True),
        ("matches", "^nine", "We open at nine.", False),
        ("json_schema", '{"required": ["open"]}', '```json\n{"open": 9}\n```', True),
        ("json_schema", '{"required": ["open"]}', '{"close": 9}', False),
        ("json_schema", '{"properties": {"pattern": {"type": "string"}}}', '{"pattern": 1}', False),
        ("json_schema", "{}", "nine", False),
        ("json_schema", "[]", "{}", None),
        ("matches", "[", "nine", None),
    ],
)
def test_an_answer_is_compared(expected: str, expectation: str, answer: str, passes: bool | None) -> None:
    verdict = check_answer(expected, expectation, answer)
    assert verdict.passes is passes
    assert bool(verdict.detail) is (passes is not True)


@pytest.mark.parametrize(
    ("reply", "passes", "detail"),
    [
        ("PASS", True, ""),
        ("**FAIL**: it says ten.", False, "it says ten."),
        ("\n PASS - right", True, "right"),
        ("PASSABLE", None, None),
        ("I would say PASS", None, None),
        ("", None, None),
    ],
)
def test_a_judgement_begins_with_its_verdict(reply: str, passes: bool | None, detail: str | None) -> None:
    verdict = read_judgement(reply)
    assert verdict.passes is passes
    assert detail is None or verdict.detail == detail


def test_hostile_expressions_and_answers_take_no_time() -> None:
    text = "a" * 100_000 + "b"
    plain = began = time.process_time()
    check_answer("matches", "a+$", text)
    plain = time.process_time() - began
    began = time.process_time()
    check_answer("matches", "(a+)+$", text)
    check_answer("matches", "(a|a)*$", text)
    assert time.process_time() - began < 100 * plain + 1


def test_the_first_64_kib_of_an_answer_are_matched() -> None:
    inside = check_answer("matches", "end", "é" * (MAX_MATCHED_BYTES // 2 - 2) + "end!")
    assert inside.passes is True
    beyond = check_answer("matches", "end", "é" * (MAX_MATCHED_BYTES // 2 - 1) + "end")
    assert (beyond.passes, "the first 64 KiB" in beyond.detail) == (False, True)


@pytest.mark.parametrize(
    "expression",
    [
        "((a?b?){30}){30}c",
        "(x*[^y]?){400}zz$",
        ".{0,500}.{0,400}z",
        r"\pL" * 300,
        "(((((((a{0,9}){0,9}){0,9}){0,9}){0,9}){0,9}){0,9})",
        "x" * (MAX_EXPRESSION_CHARS + 1),
    ],
)
def test_a_large_expression_is_refused_at_once(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(BadExpectation, match=r"too large|1,000 characters|repetition"):
        check_expectation("matches", expression)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "expression",
    [
        "a{0,740}c",  # nearly as many steps as an expression may have, all of them taken for each character
        "a[ab]{900}c",
        "(?:a[ab]?){480}c",
        "(((a?b?)))" * 90 + "c",  # groups cost nothing
        r"(?m)(?:^?.?$?){110}q",
    ],
)
@pytest.mark.parametrize("piece", ["a", "ab", "\U0001f600"])
def test_the_dearest_expressions_take_half_a_second(expression: str, piece: str) -> None:
    check_expectation("matches", expression)
    began = time.process_time()
    assert check_answer("matches", expression, piece * 1_000_000).passes is False
    assert time.process_time() - began < 5  # ten times what was measured


def test_ordinary_expressions_are_accepted() -> None:
    for expression in (
        r"(?i)^we open at (nine|9)( a\.?m\.?)?\b",
        r"^\pL+, \d{4}-\d{2}-\d{2}$",
        r"\w{1,60}@\w+\.com",
    ):
        check_expectation("matches", expression)
    assert MAX_EXPRESSION_STEPS >= 1_000
