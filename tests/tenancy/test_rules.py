"""No address, frame or method without a rule, and no rule without one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import ROOT
from tests.tenancy.rest_rules import ACCOUNTS, REST
from tests.tenancy.rights import May
from tests.tenancy.routes import served
from tests.tenancy.rules import RULES

TESTS = ROOT / "tests"


def test_everything_served_has_a_rule_and_every_rule_something_served() -> None:
    there, ruled = served(), set(RULES)
    assert sorted(there - ruled) == [], "give these a rule in tests/tenancy/rules.py or rest_rules.py"
    assert sorted(ruled - there) == [], "these are gone: take their rules out"


def test_the_reading_of_the_code_is_not_blind() -> None:
    there = served()
    assert len(there) > 100
    assert {"POST /api/v1/peers/probe", "/cli subscribe", "METHOD hub GetTask", "PAGE /account"} <= there
    assert set(ACCOUNTS) <= set(REST)


@pytest.mark.parametrize("name", sorted(one.test for one in RULES.values() if one.may is May.BY_HAND))
def test_what_is_shown_by_hand_has_its_test(name: str) -> None:
    assert any(f"def {name}(" in path.read_text() for path in _tests()), name


def _tests() -> Iterator[Path]:
    return TESTS.rglob("test_*.py")
