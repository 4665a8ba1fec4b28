"""`/desk/costs` and its spreadsheet: an owner's own costs by agent, caller and day."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import DailyUsage, Turn
from kit.clock import db_now
from tests.native.desk import sheet, text
from tests.native.rows import Person, browser, make_agent, make_turn

pytestmark = pytest.mark.django_db


def asked(agent: Any, caller: Any, cost: int | None, *, days_ago: int = 0, **fields: Any) -> Turn:
    at = timezone.now() - timedelta(days=days_ago)
    day = db_now().date() - timedelta(days=days_ago)
    return make_turn(agent, caller, asked_at=at, usage_day=day, cost_microusd=cost, **fields)


def test_the_page_sums_by_agent_caller_and_day(alice: Person, bob: Person, signed_in: Client) -> None:
    agent, other = make_agent(alice.user), make_agent(alice.user, "other", daily_limit_microusd=2_000_000)
    asked(agent, bob.user, 1_500_000, input_tokens=1200, output_tokens=80)
    asked(agent, bob.user, None)
    asked(other, alice.user, 250_000, days_ago=1)
    asked(other, alice.user, 9_000_000, days_ago=8)
    make_turn(agent, bob.user, "denied", reason="busy")
    asked(make_agent(bob.user, "bobs"), alice.user, 77_000_000)
    page = text(signed_in, "/desk/costs")
    assert "<dd>$1.75</dd>" in page  # of three questions, two with a cost
    assert page.index(f"@{agent.handle}</th>") < page.index(f"@{other.handle}</th>")
    assert "$0.00 of $2.00 today" in page
    assert "$77" not in page
    by_caller = text(signed_in, "/desk/costs", by="caller")
    assert "@bob</th>" in by_caller
    assert "$1.50" in by_caller
    assert "$10.75" in text(signed_in, "/desk/costs", days=30)
    for nonsense in ({"by": "x"}, {"days": "x"}, {"page": "x"}):
        assert "By agent" in text(signed_in, "/desk/costs", **nonsense)
    assert text(signed_in, "/desk/costs", by="day").count('scope="row"') == 2


def test_the_page_says_which_limit_of_today_is_reached(alice: Person) -> None:
    for slug, cost in (("below", 400_000), ("at-it", 500_000)):
        agent = make_agent(alice.user, slug, daily_limit_microusd=500_000)
        DailyUsage.objects.create(agent=agent, day=db_now().date(), queries=1, cost_microusd=cost)
    page = text(browser(alice.session), "/desk/costs")
    limits = dict(re.findall(r'#limits">@alice/([\w-]+)</a>.*?class="left">([^<]+)<', page, re.DOTALL))
    assert limits == {"below": "$0.40 of $0.50 today", "at-it": "$0.50 of $0.50 today, limit reached"}


@pytest.mark.django_db(transaction=True)  # another thread reads
def test_the_spreadsheet_has_a_line_for_each_day_agent_and_caller(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    asked(agent, bob.user, 1_500_000, input_tokens=1200, output_tokens=80)
    asked(agent, bob.user, 4_200)
    asked(agent, None, None, days_ago=2)
    today = db_now().date()
    _, heading, first, second = sheet(browser(alice.session), "/desk/costs.csv")
    assert heading[:3] == ["day", "agent", "caller"]
    assert first == [today.isoformat(), agent.handle, "bob", "2", "2", "1.5042", "1200", "80"]
    assert second[2:6] == ["(public)", "1", "0", ""]
    assert len(sheet(browser(bob.session), "/desk/costs.csv")) == 2


def test_without_questions_the_page_says_what_to_do(alice: Person, bob: Person) -> None:
    page = text(browser(alice.session), "/desk/costs")
    assert "No questions in these days" in page
    asked(make_agent(alice.user), bob.user, None)
    assert "No agent of yours has reported a cost" in text(browser(alice.session), "/desk/costs")
    assert browser().get("/desk/costs").status_code == 302
    assert browser().get("/desk/costs.csv").status_code == 302
