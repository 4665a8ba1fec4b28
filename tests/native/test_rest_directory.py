"""The directory over REST, and the audit of an agent."""

from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Agent, Session
from tests.native.rows import Person, api, connect, make_agent, make_turn, names, spend
from tests.native.test_rest_agents import AGENTS, FIELDS


def test_the_directory_lists_published_agents_and_with_mine_all_own_ones(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "draft", "draft")
    make_agent(alice.user, "open")
    make_agent(bob.user, "draft", "draft")
    make_agent(bob.user, "open")
    assert names(api(alice.session).get(AGENTS).json()["items"]) == ["alice/open", "bob/open"]
    mine = api(alice.session).get(f"{AGENTS}?mine=true").json()["items"]
    assert names(mine) == ["alice/draft", "alice/open"]
    assert api(alice.session).get(f"{AGENTS}?mine=true&owner=bob").json()["items"] == []


def test_a_list_without_a_limit_holds_every_agent_and_none_of_the_long_texts(alice: Person, bob: Person) -> None:
    first = make_agent(alice.user, "first", claude_md="# Notes", personalization_prompt="be kind")
    handles = [f"alice/a{number:03}" for number in range(205)]
    sessions = Session.objects.bulk_create(Session(owner=alice.user, routing_name=one) for one in handles)
    Agent.objects.bulk_create(
        Agent(session=session, owner=alice.user, handle=one, handle_key=one, name=one, status="published")
        for one, session in zip(handles, sessions, strict=True)
    )
    items = api(bob.session).get(AGENTS).json()["items"]
    assert names(items) == [*handles, "alice/first"]
    assert (items[-1]["claudeMd"], items[-1]["personalizationPrompt"]) == (None, None)
    shown = api(bob.session).get(f"{AGENTS}/by-handle/{first.handle}").json()
    assert (shown["claudeMd"], shown["personalizationPrompt"]) == ("# Notes", "be kind")


def test_the_directory_can_be_searched_and_paged(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "notes")
    make_agent(bob.user, "cook", tagline="Knows recipes")
    make_agent(bob.user, "notes")
    for query, found in [
        ("owner=BOB", ["bob/cook", "bob/notes"]),
        ("q=NOTES", ["alice/notes", "bob/notes"]),
        ("limit=1", ["alice/notes"]),
        ("limit=1&offset=2", ["bob/notes"]),
        ("limit=5000", ["alice/notes", "bob/cook", "bob/notes"]),
    ]:
        assert names(api(alice.session).get(f"{AGENTS}?{query}").json()["items"]) == found, (query, found)


def test_a_query_that_makes_no_sense_is_a_400(alice: Person) -> None:
    for query in ["limit=0", "limit=x", "offset=-1", "q=%00", "mine=perhaps"]:
        answer = api(alice.session).get(f"{AGENTS}?{query}")
        assert answer.status_code == 400, query
        assert answer.json()["message"].startswith(query.partition("=")[0]), query


def test_by_handle_finds_in_any_case(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "notes")
    answer = api(bob.session).get(f"{AGENTS}/by-handle/Alice/NOTES")
    assert answer.status_code == 200
    assert set(answer.json()) == FIELDS


def test_by_handle_answers_404_in_json_for_whatever_is_no_agent(alice: Person) -> None:
    for handle in ["alice/", "alice/absent", "alice/%00", "alice", "a/b/c"]:
        answer = api(alice.session).get(f"{AGENTS}/by-handle/{handle}")
        assert answer.status_code == 404, handle
        assert answer.json()["error"] == "not_found", handle


def test_a_list_costs_the_same_queries_for_one_agent_and_for_many(alice: Person) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert api(alice.session).get(AGENTS).status_code == 200
        return len(queries)

    make_agent(alice.user, "first")
    api(alice.session).get(AGENTS)
    before = cost()
    for number in range(20):
        connect(make_agent(alice.user, f"agent-{number}").session)
    assert cost() == before


def test_counts_are_of_the_utc_day_and_of_all_days(alice: Person, agent: Agent) -> None:
    spend(agent, 3)
    spend(agent, 4, days_ago=1)
    turn = make_turn(agent, alice.user)
    make_turn(agent, alice.user, "denied", reason="offline", asked_at=turn.asked_at + timedelta(minutes=1))
    shown = api(alice.session).get(f"{AGENTS}/by-handle/alice/helper").json()
    assert (shown["queriesToday"], shown["queriesAllTime"]) == (3, 7)
    assert shown["lastQueryAt"][:19] == turn.asked_at.isoformat()[:19]


def test_inbound_sums_the_window_and_shows_the_newest_first(alice: Person, bob: Person) -> None:
    agent, now = make_agent(alice.user), timezone.now()
    long_ago = now - timedelta(days=8)
    make_turn(agent, bob.user, asked_at=long_ago, latency_ms=9_000)
    make_turn(
        agent, bob.user, asked_at=now - timedelta(minutes=5), latency_ms=100, chat_id="chat-1", question="one"
    )
    made = now - timedelta(minutes=4)
    make_turn(agent, None, asked_at=made, latency_ms=201, input_tokens=7, cost_microusd=250_000)
    make_turn(agent, bob.user, "denied", reason="busy", repeats=30, asked_at=now - timedelta(minutes=3))
    make_turn(agent, bob.user, "failed", reason="timeout", latency_ms=60_000, asked_at=now - timedelta(minutes=2))
    make_turn(agent, alice.user, None, asked_at=now - timedelta(minutes=1))
    body = api(alice.session).get(f"{AGENTS}/{agent.pk}/inbound").json()
    assert set(body) == {"agent", "window", "summary", "publicThreadStats", "topAskers", "recent"}
    assert body["agent"]["allowedLogins"] == []  # as its owner sees it
    assert body["window"]["days"] == 7
    costs = {"costUsd": 0.25, "costReported": 1}
    sums = {"total": 33, "ok": 2, "denied": 31, "avgLatencyMs": 150, "distinctAskers": 2}
    assert body["summary"] == sums | costs
    used = {"inputTokens": 7, "outputTokens": None, "costUsd": 0.25}
    assert names(body["recent"], "usage") == [None, None, None, used, None]
    assert body["publicThreadStats"] == {"total": 0, "today": 0, "active": 0}
    assert [(top["login"], top["count"]) for top in body["topAskers"]] == [("bob", 32), ("(public)", 1)]
    assert names(body["recent"], "deniedReason") == ["in_progress", "timeout", "busy", None, None]
    assert names(body["recent"], "ok") == [False, False, False, True, True]
    assert names(body["recent"], "latencyMs") == [None, None, None, 201, 100]
    assert names(body["recent"], "askerLogin") == ["alice", "bob", "bob", "(public)", "bob"]
    assert body["recent"][2]["routeId"] is None
    assert (body["recent"][4]["routeId"], body["recent"][4]["question"]) == ("chat-1", "one")
    assert body["recent"][4]["ts"].endswith("Z")


def test_inbound_of_an_agent_without_asks_is_all_zeros(alice: Person) -> None:
    body = api(alice.session).get(f"{AGENTS}/{make_agent(alice.user).pk}/inbound").json()
    assert body["summary"] == {"total": 0, "ok": 0, "denied": 0, "avgLatencyMs": None, "distinctAskers": 0} | {
        "costUsd": 0,
        "costReported": 0,
    }
    assert (body["topAskers"], body["recent"]) == ([], [])


def test_inbound_looks_back_as_far_as_asked(alice: Person, agent: Agent) -> None:
    make_turn(agent, alice.user, asked_at=timezone.now() - timedelta(days=20))
    url = f"{AGENTS}/{agent.pk}/inbound"
    assert api(alice.session).get(f"{url}?days=30").json()["summary"]["total"] == 1
    assert api(alice.session).get(f"{url}?days=19").json()["summary"]["total"] == 0
    for days in ("0", "31", "week"):
        assert api(alice.session).get(f"{url}?days={days}").status_code == 400
