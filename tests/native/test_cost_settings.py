"""The cost limit of an agent: set over REST and on the desk, told to the owner alone, felt by the caller."""

import pytest

from accounts.models import User
from agents.models import Agent, CallerBudget, DailyUsage
from kit.clock import db_now
from tests.native.desk import FIELDS
from tests.native.rows import Person, api, browser, connect, make_agent, patch

pytestmark = pytest.mark.django_db
AGENTS = "/api/v1/agents"
LIMITS = ("dailyCostLimitUsd", "callerCostLimitUsd")


def spend(agent: Agent, microusd: int, caller: User | None = None) -> None:
    today = {"day": db_now().date(), "queries": 1, "cost_microusd": microusd}
    if caller is None:
        DailyUsage.objects.create(agent=agent, **today)
    else:
        CallerBudget.objects.create(agent=agent, caller=caller, **today)


def test_the_owner_sets_both_over_rest_in_dollars(alice: Person, bob: Person, agent: Agent) -> None:
    spend(agent, 1_234_567)
    answer = patch(alice, agent, dailyCostLimitUsd=5.5, callerCostLimitUsd="0.000001").json()
    assert [answer[name] for name in (*LIMITS, "costTodayUsd")] == [5.5, 0.000001, 1.234567]
    agent.refresh_from_db()
    assert (agent.daily_limit_microusd, agent.caller_limit_microusd) == (5_500_000, 1)
    seen = api(bob.session).get(f"{AGENTS}/by-handle/{agent.handle}").json()
    assert not {*LIMITS, "costTodayUsd"} & set(seen)
    answer = patch(alice, agent, dailyCostLimitUsd=None, callerCostLimitUsd=0).json()
    assert [answer[name] for name in LIMITS] == [None, 0]


def test_what_is_no_amount_is_refused(alice: Person, agent: Agent) -> None:
    for field in LIMITS:
        for value in [-1, 1_000_001, 0.0000001, "NaN", "Infinity", "x", [], True, "1e400"]:
            assert patch(alice, agent, **{field: value}).status_code == 400, value
            agent.refresh_from_db()
            assert (agent.daily_limit_microusd, agent.caller_limit_microusd) == (None, None), value


def test_the_desk_sets_both(alice: Person, subtests: pytest.Subtests, agent: Agent) -> None:
    client, url = browser(alice.session), f"/desk/agents/{agent.pk}"
    limits = {"daily_limit_microusd": "2.50", "caller_limit_microusd": "0.0042"}
    assert client.post(url, FIELDS | limits).status_code == 302
    agent.refresh_from_db()
    assert (agent.daily_limit_microusd, agent.caller_limit_microusd) == (2_500_000, 4_200)
    page = client.get(url).content.decode()
    assert 'value="2.50"' in page
    assert 'value="0.0042"' in page
    for bad in ("-1", "1000001", "0.0000001", "five", "NaN"):
        with subtests.test(limit=bad):
            refused = client.post(url, FIELDS | {"daily_limit_microusd": bad})
            assert refused.status_code == 400
            assert f'value="{bad}"' in refused.content.decode()
    assert client.post(url, FIELDS).status_code == 302
    agent.refresh_from_db()
    assert agent.daily_limit_microusd is None


@pytest.mark.parametrize("is_own", [False, True])
def test_a_caller_is_told_before_asking(alice: Person, bob: Person, is_own: bool) -> None:
    limit = "caller_limit_microusd" if is_own else "daily_limit_microusd"
    agent = make_agent(alice.user, **{limit: 1_000_000})
    connect(agent.session)
    path = f"/agents/{agent.handle}"
    assert "questions left today" in browser(bob.session).get(path).content.decode()
    spend(agent, 1_000_000, bob.user if is_own else None)
    page = browser(bob.session).get(path).content.decode()
    assert ("your cost limit of today reached" if is_own else "cost limit of today reached") in page
    assert ("as its owner allows one caller" if is_own else "as its owner allows on one day") in page
    assert "1.00" not in page  # how much is the owner's matter
    assert ("Raise the limit" in browser(alice.session).get(path).content.decode()) is not is_own
    sheet = browser().get(f"/api/a2a/v1/agents/{agent.handle}/usage.md").content.decode()
    assert "limits its cost of a day" in sheet
