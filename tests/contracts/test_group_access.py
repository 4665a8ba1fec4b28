"""Groups at agents: who may ask by a group, what a group may spend, and which asks end with the access."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.utils import timezone

from accounts import groups
from accounts.authn import digest
from accounts.models import Credential, Group, Membership
from accounts.tokens import mint
from agents.core.directory import find_caller_spending, revise_agent
from agents.core.errors import NotPublished, OverCallerBudget, OverGroupBudget
from agents.core.ledger.state import LookUp, look_up
from agents.core.ledger.work import Result
from agents.core.lost_access import find_asks_without_access
from agents.core.types import Ask, OpenTurn, TurnEnding
from agents.models import Agent, CallerBudget, QueuedAsk
from agents.models.choices import Outcome, TurnFailure
from tests.contracts.rows import HOME, Published, admitted, ask, decide, end, published, user

pytestmark = pytest.mark.django_db
Role = Membership.Role
UNSENT = TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.NOT_DELIVERED, returns_budget=True)


def make_team(*logins: str, slug: str = "team", role: str = Role.MEMBER) -> Group:
    """A group that maria maintains, with these members."""
    team = groups.create_group(slug, "Team", made_by=user("maria"))
    for login in logins:
        groups.add_member(team, user(login), role, by=user("maria"))
    return team


def limited_to(team: Group) -> Published:
    agent = published(access="limited", concurrency_cap=20)
    revise_agent(agent.agent.pk, {}, allowed=[team.account])
    return agent


def owned_by(team: Group, access: str = "private") -> Published:
    agent = published(access=access)
    agent.agent.session.owner = agent.agent.owner = team.account
    agent.agent.session.save()
    agent.agent.save()
    return agent


def may_ask(agent: Published, login: str) -> bool:
    """Whether look-up, admission and the catalog let the caller ask, which must agree."""
    token = mint(user(login), Credential.Kind.APP, "test").token
    found = look_up([LookUp(digest(token), agent.agent.handle)])[0].agent is not None
    listed = Agent.objects.askable_by(user(login).pk).filter(pk=agent.agent.pk).exists()
    [decided] = decide(ask(agent, login))
    is_admitted = isinstance(decided, OpenTurn)
    if isinstance(decided, OpenTurn):
        end(decided)
    else:
        assert isinstance(decided, NotPublished)
    assert found == listed == is_admitted
    return is_admitted


@pytest.mark.ledger
@pytest.mark.parametrize("give", [limited_to, owned_by])
def test_members_and_maintainers_ask_and_auditors_and_others_do_not(give: Callable[[Group], Published]) -> None:
    team = make_team("alice")
    groups.add_member(team, user("audrey"), Role.AUDITOR, by=None)
    agent = give(team)
    asking = {login: may_ask(agent, login) for login in ("maria", "alice", "audrey", "mallory")}
    assert asking == {"maria": True, "alice": True, "audrey": False, "mallory": False}
    groups.remove_member(team, user("alice"), by=user("maria"))
    groups.change_role(team, user("audrey"), Role.MEMBER, by=user("maria"))
    assert (may_ask(agent, "alice"), may_ask(agent, "audrey")) == (False, True)


@pytest.mark.ledger
def test_a_suspended_group_gives_no_access() -> None:
    team = make_team("alice")
    agent = limited_to(team)
    team.account.is_active = False
    team.account.save()
    assert not may_ask(agent, "alice")


@pytest.mark.ledger
def test_a_private_agent_that_names_a_group_answers_its_owner_alone() -> None:
    agent = limited_to(make_team("alice"))
    revise_agent(agent.agent.pk, {"access": "private"})
    assert not may_ask(agent, "alice")


@pytest.mark.ledger
def test_all_members_spend_the_budget_of_the_group_to_the_unit() -> None:
    agent = published(concurrency_cap=20)
    team = make_team("alice", "bob")
    revise_agent(agent.agent.pk, {}, budgets={team.account: 3})
    results: list[Result] = []
    for login in ("alice", "bob", "maria", "alice", "bob"):
        [one] = decide(ask(agent, login))
        results.append(one)
        if isinstance(one, OpenTurn):
            end(one)
    assert [type(one) for one in results] == [OpenTurn] * 3 + [OverGroupBudget] * 2
    end(admitted(ask(agent, "mallory")))
    spending = find_caller_spending(agent.agent, user("bob").pk)
    assert spending is not None
    assert (spending.budget, spending.left, agent.spent) == (3, 0, 4)


@pytest.mark.ledger
def test_one_batch_counts_all_groups_of_a_caller_and_the_callers_own_budget() -> None:
    agent = published(concurrency_cap=20)
    first, second = make_team("alice"), make_team("alice", slug="second")
    revise_agent(agent.agent.pk, {}, budgets={first.account: 2, second.account: 5, user("alice"): 9})
    results = decide(*(ask(agent) for _ in range(4)))
    assert [type(one) for one in results] == [OpenTurn] * 2 + [OverGroupBudget] * 2
    assert dict(CallerBudget.objects.values_list("caller__login", "queries")) == {
        "team": 2,
        "second": 2,
        "alice": 2,
    }
    spending = find_caller_spending(agent.agent, user("alice").pk)
    assert spending is not None
    assert (spending.budget, spending.left) == (2, 0)


@pytest.mark.ledger
def test_the_callers_own_budget_holds_beside_that_of_the_group() -> None:
    agent = published(concurrency_cap=20)
    team = make_team("alice")
    revise_agent(agent.agent.pk, {}, budgets={team.account: 5, user("alice"): 1})
    results = decide(*(ask(agent) for _ in range(2)))
    assert [type(one) for one in results] == [OpenTurn, OverCallerBudget]


@pytest.mark.ledger
def test_asks_of_auditors_are_not_counted() -> None:
    agent = published(concurrency_cap=20)
    team = make_team("audrey", role=Role.AUDITOR)
    revise_agent(agent.agent.pk, {}, budgets={team.account: 0})
    end(admitted(ask(agent, "audrey")))


@pytest.mark.ledger
def test_what_never_left_is_given_back_to_the_group_but_not_to_one_that_was_joined_later() -> None:
    agent = published(concurrency_cap=20)
    team, later = make_team("alice"), make_team(slug="later")
    revise_agent(agent.agent.pk, {}, budgets={team.account: 1, later.account: 1})
    CallerBudget.objects.filter(caller=later.account).update(day=timezone.now().date(), queries=1)
    turn = admitted(ask(agent))
    groups.add_member(later, user("alice"), by=None)
    end(turn, UNSENT)
    assert dict(CallerBudget.objects.values_list("caller__login", "queries")) == {"team": 0, "later": 1}


@pytest.mark.django_db(transaction=True)
@pytest.mark.ledger
def test_of_twenty_members_who_race_for_the_last_unit_one_wins() -> None:
    agent = published(concurrency_cap=20)
    logins = [f"m{number}" for number in range(20)]
    team = make_team(*logins)
    revise_agent(agent.agent.pk, {}, budgets={team.account: 1})
    asks = [ask(agent, login) for login in logins]

    def race(one: Ask) -> Result:
        try:
            [decided] = decide(one)
            if isinstance(decided, OpenTurn):
                end(decided)
            return decided
        finally:
            connection.close()

    at_once = 10 if connection.vendor == "postgresql" else 1  # SQLite has one writer, the ledger's thread
    with ThreadPoolExecutor(at_once) as threads:
        results = list(threads.map(race, asks))
    assert sum(isinstance(one, OpenTurn) for one in results) == 1
    assert agent.spent == 1
    assert set(Counter(type(one).__name__ for one in results)) <= {"OpenTurn", "OverGroupBudget", "Busy"}


@pytest.mark.ledger
@pytest.mark.parametrize("give", [limited_to, owned_by])
def test_open_asks_end_with_the_access_and_others_go_on(give: Callable[[Group], Published]) -> None:
    team = make_team("alice")
    agent, open_to_all = give(team), published()
    of_group, of_public = admitted(ask(agent)), admitted(ask(open_to_all))
    assert find_asks_without_access(HOME) == []
    groups.remove_member(team, user("alice"), by=None)
    assert find_asks_without_access(HOME) == [of_group.ask.chat_id]
    assert find_asks_without_access("another-process") == []
    if agent.agent.access == "limited":
        revise_agent(agent.agent.pk, {}, allowed=[user("alice")])
        assert find_asks_without_access(HOME) == []
    end(of_group)
    end(of_public)
    assert find_asks_without_access(HOME) == []


def test_a_waiting_ask_ends_with_the_access() -> None:
    team = make_team("alice")
    agent = limited_to(team)
    waiting = ask(agent)
    QueuedAsk.objects.create(
        agent=agent.agent,
        session=agent.agent.session,
        caller=user("alice"),
        chat_id=waiting.chat_id,
        home=HOME,
        question="what?",
        queued_at=timezone.now(),
        waits_until=timezone.now(),
    )
    assert find_asks_without_access(HOME) == []
    groups.change_role(team, user("alice"), Role.AUDITOR, by=None)
    assert find_asks_without_access(HOME) == [waiting.chat_id]


def test_a_token_of_a_group_ends_with_the_suspension_of_its_maker() -> None:
    team = make_team()
    minted = mint(team.account, Credential.Kind.APP, "ours")
    Credential.objects.filter(pk=minted.credential.pk).update(minted_by=user("maria"))
    [found] = look_up([LookUp(digest(minted.token), None)])
    assert found.identity is not None
    assert found.identity.login == "team"
    maria = user("maria")
    maria.is_active = False
    maria.save()
    assert look_up([LookUp(digest(minted.token), None)])[0].identity is None
    assert not Credential.objects.accepted().filter(pk=minted.credential.pk).exists()
