"""Every address by every caller: the rules hold, absent and not-yours look the same, a refusal changes nothing."""

import re
from typing import Any

import pytest

from lab.waiting import until
from tests.tenancy.callers import ABSENT, ONE_OF_EACH_KIND, Caller, verdict
from tests.tenancy.rest_rules import REST
from tests.tenancy.rights import May, Rule
from tests.tenancy.rules import BRIDGE, PAGES
from tests.tenancy.web import Answer
from tests.tenancy.world import World

LISTED = REST | BRIDGE | PAGES
ASKED = {name: rule for name, rule in LISTED.items() if rule.may not in (May.BY_HAND, May.OWN_PAGE)}
NAMED = re.compile(r"\{(\w+)\}")
RESTS = [name for name in ASKED if not name.startswith("METHOD")]
EVERY_RULE = pytest.mark.parametrize("name", RESTS)
MASKED = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')  # new in each answer
CANARY = re.compile(r"canary-\w+")
VOLATILE = {"content-length", "set-cookie", "traceparent"}  # the cookie is that of forms
TIMES = {"date", "expires"}  # in whole seconds: two answers may be of two
NOT_AN_OBJECT = {"given", "kind", "metric", "desktop", "login", "owner"}
Told = tuple[int, str, list[tuple[str, str]]]
WITHOUT_STRANGER = {May.ANY_CALLER, May.STAFF, May.AGENT}  # of a suspended owner no agent has a live token


def objects_of(name: str) -> set[str]:
    """The placeholders in a rule's request that stand for objects."""
    rule = ASKED[name]
    return set(NAMED.findall(f"{name} {rule.query} {rule.body}")) - NOT_AN_OBJECT


def has_owner(name: str) -> bool:
    """True if a rule names rows that may belong to the suspended user."""
    return ASKED[name].may not in WITHOUT_STRANGER and bool(objects_of(name))


@EVERY_RULE
def test_the_rule_of_an_address_holds_for_every_caller(tenants: World, name: str) -> None:
    rule, before, absent = ASKED[name], tenants.changes.mark(), None
    for one, caller in tenants.callers.items():
        expected = verdict(rule, caller)
        if expected is None:
            continue
        answer = tenants.call(name, rule, caller.token, tenants.main)
        if expected == ABSENT:
            absent = absent or about_absent(tenants, name, caller.token)
            assert told(name, answer, tenants.main) == absent, one
        else:
            assert answer.status_code == expected, (one, answer.text)
        check_refusal(answer, one, caller)
    if has_owner(name):
        for one in ("anna", "olga", "stan"):  # what belongs to the suspended is absent for all
            if absent is None or name.startswith("PAGE "):  # a page names its reader
                absent = about_absent(tenants, name, one)
            assert told(name, tenants.call(name, rule, one, tenants.gone), tenants.gone) == absent, one
    tenants.changes.check_none(before)
    check_served(tenants, name)


def about_absent(tenants: World, name: str, caller: str) -> Told:
    """The answer to a caller about an object that is not there: the same to all who may not see it."""
    absent = told(name, tenants.call(name, ASKED[name], caller, tenants.absent), tenants.absent)
    assert absent[0] == 404, absent
    return absent


def check_served(tenants: World, name: str) -> None:
    """Each caller who may is served, and reads no more than what is theirs to read.

    One caller of each kind asks for an operation that is open to every caller.
    """
    rule = ASKED[name]
    for one, caller in tenants.callers.items():
        if verdict(rule, caller) is not None or (rule.may is May.ANY_CALLER and one not in ONE_OF_EACH_KIND):
            continue
        before = tenants.changes.mark()
        answer = patiently(tenants, name, rule, caller, tenants.spare(name) if rule.writes else tenants.main)
        assert answer.status_code in rule.ok, (one, answer.text)
        if rule.may is not May.STAFF:
            assert set(CANARY.findall(answer.text)) <= caller.may_read, (one, answer.text)
        if changes_own(rule, caller):
            tenants.changes.check_none(before, but_of=tenants.user_ids[caller.token])


@pytest.mark.parametrize("name", [name for name in ASKED if len(objects_of(name) & set(NAMED.findall(name))) > 1])
def test_anothers_object_is_not_found_through_ones_own(tenants: World, name: str) -> None:
    rule, inner = ASKED[name], NAMED.findall(name)[-1]
    before = tenants.changes.mark()
    theirs = tenants.other | {inner: tenants.main[inner]}
    nothing = tenants.other | {inner: tenants.absent[inner]}
    answer = told(name, tenants.call(name, rule, "stan", theirs), theirs)
    assert answer == told(name, tenants.call(name, rule, "stan", nothing), nothing)
    assert answer[0] == 404
    tenants.changes.check_none(before)


def told(name: str, answer: Answer, names: dict[str, Any]) -> Told:
    """The text of an answer, without the names that were asked for, the time and the mask of a form."""
    text = MASKED.sub("", answer.text)
    for key in objects_of(name):
        text = re.sub(rf"\b{re.escape(str(names[key]))}\b", f"<{key}>", text)
    said = [(key, value) for key, value in answer.headers.items() if key not in VOLATILE]
    headers = [(key, "<time>" if key in TIMES else value) for key, value in said]
    return answer.status_code, text, sorted(headers)


def check_refusal(answer: Answer, one: str, caller: Caller) -> None:
    """The form of a refusal, in which nothing may be read."""
    if answer.headers["content-type"].startswith("application/json"):
        assert answer.json().keys() == {"error", "message"}, one
    assert not CANARY.search(answer.text), (one, answer.text)
    assert (answer.status_code == 401) == ("www-authenticate" in answer.headers), (one, caller)


def changes_own(rule: Rule, caller: Caller) -> bool:
    """True if a caller may change things, but only their own."""
    return rule.may in (May.SIGNED_IN, May.BY_SESSION) and rule.body is not None and caller.rank < 4


def patiently(tenants: World, name: str, rule: Rule, caller: Caller, names: dict[str, Any]) -> Answer:
    """The answer, once the agent is free of what others asked it."""

    def free() -> Answer | None:
        answer = tenants.call(name, rule, caller.token, names)
        return None if rule.asks and answer.status_code == 409 and "busy" in answer.text else answer

    return until(free, f"{name}: the agent is free", within_s=20)
