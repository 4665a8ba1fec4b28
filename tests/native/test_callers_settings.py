"""Rights of single callers of an agent: set over REST and on the desk, shown to the owner and to the caller."""

import pytest

from a2a_bridge.surface import cards as strict
from accounts.models import User
from agents.models import Agent, CallerBudget, RemoteServer, Session
from agents.models.agent import MAX_NAMED_CALLERS
from agents.models.remote import REMOTE_LINK
from kit.clock import db_now
from tests.native.desk import FIELDS
from tests.native.rows import Person, api, browser, connect, make_agent, patch

pytestmark = pytest.mark.django_db
AGENTS = "/api/v1/agents"


def budgets(agent: Agent) -> dict[str, int | None]:
    return dict(CallerBudget.objects.filter(agent=agent).values_list("caller__login", "daily_budget"))


def spent(agent: Agent, caller: User, queries: int) -> None:
    CallerBudget.objects.update_or_create(
        agent=agent, caller=caller, defaults={"day": db_now().date(), "queries": queries}
    )


def test_the_owner_sets_both_over_rest(alice: Person, bob: Person, agent: Agent) -> None:
    answer = patch(alice, agent, callerBudgetQueries=5, callerBudgets={"BOB": 7}).json()
    assert (answer["callerBudgetQueries"], answer["callerBudgets"]) == (5, {"bob": 7})
    assert patch(alice, agent, tagline="new").json()["callerBudgets"] == {"bob": 7}
    seen = api(bob.session).get(f"{AGENTS}/by-handle/{agent.handle}").json()
    assert seen["callerBudgetQueries"] == 5
    assert "callerBudgets" not in seen
    spent(agent, bob.user, 2)
    answer = patch(alice, agent, callerBudgetQueries=None, callerBudgets={}).json()
    assert (answer["callerBudgetQueries"], answer["callerBudgets"]) == (None, {})
    assert CallerBudget.objects.get().queries == 2  # what was spent today stays counted


def test_what_is_no_budget_is_refused(alice: Person, bob: Person, agent: Agent) -> None:
    for field, value in [
        ("callerBudgetQueries", -1),
        ("callerBudgetQueries", 100_001),
        ("callerBudgets", {"unknown": 1}),
        ("callerBudgets", {"bob": -1}),
        ("callerBudgets", {"bob": None}),
        ("callerBudgets", ["bob"]),
        ("callerBudgets", {f"b{i}": 1 for i in range(201)}),
    ]:
        assert patch(alice, agent, **{field: value}).status_code == 400, (field, value)
        assert not budgets(agent), (field, value)


def test_the_desk_sets_both(alice: Person, bob: Person, agent: Agent) -> None:
    client, url = browser(alice.session), f"/desk/agents/{agent.pk}"
    assert client.post(url, FIELDS | {"caller_budget": "5", "caller_budgets": "BOB 7\n"}).status_code == 302
    agent.refresh_from_db()
    assert (agent.caller_budget, budgets(agent)) == (5, {"bob": 7})
    assert "bob 7" in client.get(url).content.decode()
    for bad in ("bob", "bob x", "bob 100001", "unknown 3", "bob ٣"):
        assert client.post(url, FIELDS | {"caller_budgets": bad}).status_code == 400
    for field, line in (("caller_budgets", "bob 7\n"), ("allowed_logins", "bob\n")):
        refused = client.post(url, FIELDS | {field: line * (MAX_NAMED_CALLERS + 1)})
        assert (refused.status_code, "At most 200 lines." in refused.content.decode()) == (400, True)
    assert client.post(url, FIELDS).status_code == 302
    assert budgets(agent) == {"bob": None}


def test_the_owner_lets_callers_approve(alice: Person, agent: Agent) -> None:
    assert not agent.caller_approvals
    assert patch(alice, agent, callerApprovals=True).json()["callerApprovals"] is True
    client, url = browser(alice.session), f"/desk/agents/{agent.pk}"
    assert "Callers may approve" in client.get(url).content.decode()
    assert client.post(url, FIELDS).status_code == 302
    agent.refresh_from_db()
    assert not agent.caller_approvals


def test_of_a_remote_server_the_desk_offers_no_approvals(alice: Person, agent: Agent) -> None:
    Session.objects.update(link=REMOTE_LINK)
    RemoteServer.objects.create(session=agent.session, card_url="https://far.example")
    page = browser(alice.session).get(f"/desk/agents/{agent.pk}").content.decode()
    assert "Its server" in page
    assert "Callers may approve" not in page


def test_a_caller_sees_what_they_have_left(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user, caller_budget=3, daily_budget=10)
    connect(agent.session)
    spent(agent, bob.user, 3)
    page = browser(bob.session).get(f"/agents/{agent.handle}").content.decode()
    assert "0 of your 3 questions left today" in page
    assert "Your questions to it are used up" in page
    assert "10 of 10 questions left today" in browser().get(f"/agents/{agent.handle}").content.decode()
    card = strict.find_extended_card(agent.pk, bob.user.pk, "https://hub", reply_wait_s=60)
    assert card is not None
    params = card["capabilities"]["extensions"][0]["params"]
    assert (params["budgetLeft"], params["callerBudget"], params["callerBudgetLeft"]) == (10, 3, 0)
