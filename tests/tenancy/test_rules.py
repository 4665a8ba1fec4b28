"""No address, frame or method without a rule, and no rule without one."""

import re

from lab import ROOT
from tests.tenancy.rest_rules import ACCOUNTS, REST
from tests.tenancy.rights import May
from tests.tenancy.routes import served
from tests.tenancy.rules import RULES

TESTS = ROOT / "tests"
DEFINED = re.compile(r"def (\w+)\(")


def test_everything_served_has_a_rule_and_every_rule_something_served() -> None:
    there, ruled = served(), set(RULES)
    assert sorted(there - ruled) == [], "give these a rule in tests/tenancy/rules.py or rest_rules.py"
    assert sorted(ruled - there) == [], "these are gone: take their rules out"


def test_the_reading_of_the_code_is_not_blind() -> None:
    there = served()
    assert len(there) > 100
    assert {"POST /api/v1/peers/probe", "/cli subscribe", "METHOD hub GetTask", "PAGE /account"} <= there
    assert set(ACCOUNTS) <= set(REST)


def test_what_is_shown_by_hand_has_its_test() -> None:
    named = {one.test for one in RULES.values() if one.may is May.BY_HAND}
    there = {name for path in TESTS.rglob("test_*.py") for name in DEFINED.findall(path.read_text())}
    assert named <= there, named - there
