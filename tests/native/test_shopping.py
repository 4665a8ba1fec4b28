"""Tags, orders, favourites and lately asked agents of the directory, on the page and over REST."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from agents import limits
from agents.core.ranking import lower_bound, rank_agents
from agents.models import Agent, AgentRank, Favourite, Rating
from tests.native.rows import Person, api, browser, make_agent, make_turn, names, person, spend
from tests.native.test_directory_page import listed, page

AGENTS, FAVOURITES = "/api/v1/agents", "/api/v1/favourites"


def test_agents_are_found_by_their_tags_with_counts(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "a", tags=["code", "code-review"])
    make_agent(alice.user, "b", tags=["code"])
    make_agent(alice.user, "c")
    make_agent(alice.user, "closed", access="private", tags=["secret"])
    assert listed({"tag": "code"}) == ["alice/a", "alice/b"]
    assert listed({"tag": "code-review"}) == ["alice/a"]
    assert listed({"tag": "review"}) == []
    shown = page({"online": "1"})
    assert 'href="?online=1&amp;tag=code">code <span class="left">2</span>' in shown
    assert "secret" not in page()
    assert "secret" in page(visitor=alice)
    for odd in ('a"b', "%", "_", "x" * 5000, "Code", "\0"):
        assert len(listed({"tag": odd})) == 3, "no tag: no filter"
    assert names(api(bob.session).get(f"{AGENTS}?tag=code-review").json()["items"]) == ["alice/a"]
    assert api(bob.session).get(f"{AGENTS}?tag=A%20b").status_code == 400


def test_agents_are_sorted_by_use_rate_and_latency(alice: Person, bob: Person) -> None:
    busy, fast, poor, idle = (make_agent(alice.user, name) for name in ("d-busy", "c-fast", "b-poor", "a-idle"))
    spend(busy, 9)
    spend(fast, 2, days_ago=1)
    spend(poor, 5)
    spend(idle, 50, days_ago=40)
    for agent, latency_ms, failures in ((busy, 900, 1), (fast, 10, 0), (poor, 500, 8)):
        for _ in range(6):
            make_turn(agent, bob.user, latency_ms=latency_ms)
            make_turn(agent, bob.user, "failed", reason="canceled")
        for _ in range(failures):
            make_turn(agent, bob.user, "failed", reason="timeout")
    assert rank_agents() == 4
    by_name = ["alice/a-idle", "alice/b-poor", "alice/c-fast", "alice/d-busy"]
    assert listed() == by_name
    assert listed({"sort": "use"}) == ["alice/d-busy", "alice/b-poor", "alice/c-fast", "alice/a-idle"]
    assert listed({"sort": "rate"}) == ["alice/c-fast", "alice/d-busy", "alice/b-poor", "alice/a-idle"]
    assert listed({"sort": "latency"}) == ["alice/c-fast", "alice/b-poor", "alice/d-busy", "alice/a-idle"]
    assert listed({"sort": "use", "q": "alice"}) == listed({"sort": "use"})
    assert listed({"sort": "nonsense"}) == by_name
    assert names(api(bob.session).get(f"{AGENTS}?sort=latency").json()["items"]) == listed({"sort": "latency"})
    ranks = dict(AgentRank.objects.values_list("agent__handle", "answered_percent"))
    assert ranks == {"alice/d-busy": 85, "alice/c-fast": 100, "alice/b-poor": 42, "alice/a-idle": None}


def test_agents_are_sorted_by_the_thumbs_of_many_callers_before_those_of_few(alice: Person, bob: Person) -> None:
    few, many, mixed, none, own = (make_agent(alice.user, name) for name in ("a", "b", "c", "d", "e"))
    callers = [person(f"caller-{number}").user for number in range(10)]

    def give(agent: Agent, caller: User, *thumbs: bool) -> None:
        for is_good in thumbs:
            turn = make_turn(agent, caller)
            Rating.objects.create(turn=turn, agent=agent, caller=caller, is_good=is_good, rated_at=timezone.now())

    give(few, bob.user, *[True] * 20)  # one caller, one vote
    give(own, alice.user, True, True)
    for number, caller in enumerate(callers):
        give(many, caller, True)
        give(mixed, caller, number < 6)
    make_turn(none, bob.user)
    rank_agents()
    scores = dict(AgentRank.objects.values_list("agent__handle", "rating_score"))
    assert scores == {"alice/a": 207, "alice/b": 722, "alice/c": 313, "alice/d": 0, "alice/e": 0}
    assert listed({"sort": "rate"}) == [f"alice/{name}" for name in ("b", "c", "a", "d", "e")]
    Rating.objects.update(rated_at=timezone.now() - timedelta(days=91))
    AgentRank.objects.update(ranked_at=timezone.now() - timedelta(days=2))
    rank_agents()
    assert set(AgentRank.objects.values_list("rating_score", flat=True)) == {0}


@pytest.mark.parametrize(("good", "number", "least", "most"), [(0, 0, 0, 0), (0, 9, 0, 0), (1, 1, 0.2, 0.21)])
def test_few_votes_count_little(good: float, number: int, least: float, most: float) -> None:
    assert least <= lower_bound(good, number) <= most
    assert lower_bound(good + 90, number + 100) > lower_bound(good + 9, number + 10)


def test_figures_are_counted_again_for_agents_that_were_asked_and_once_a_day(alice: Person) -> None:
    asked, idle = make_agent(alice.user, "asked"), make_agent(alice.user, "idle")
    make_agent(alice.user, "draft", "draft")
    assert rank_agents() == 2
    spend(asked, 3)
    assert rank_agents() == 1
    assert asked.rank.asks == 3
    AgentRank.objects.filter(agent=idle).update(ranked_at=timezone.now() - timedelta(days=2))
    assert rank_agents() == 2


def test_a_visitor_marks_agents_and_sees_the_marked(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "a")
    closed = make_agent(alice.user, "closed", access="private")
    client, path = browser(bob.session), "/agents/alice/a/favourite"
    assert "No favourites" in page({"favourites": "1"}, bob)
    for _ in range(2):
        assert client.post(path, {"on": "1", "next": "/agents?page=1"}).headers["Location"] == "/agents?page=1"
    assert listed({"favourites": "1"}, bob) == ["alice/a"]
    assert 'aria-pressed="true"' in client.get("/agents/alice/a").content.decode()
    assert listed({"favourites": "1"}, alice) == []
    assert len(listed({"favourites": "1"})) == 1, "without a user there are no favourites"
    for back in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", ""):
        assert client.post(path, {"next": back}).headers["Location"] == "/agents/alice/a"
    assert listed({"favourites": "1"}, bob) == []
    assert client.post(f"/agents/{closed.handle}/favourite", {"on": "1"}).status_code == 404
    assert browser(None).post(path, {"on": "1"}).headers["Location"].startswith("/signin")
    assert client.get(path).status_code == 405


def test_rest_marks_agents(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "a", tagline="Knows")
    closed = make_agent(alice.user, "closed", access="private")
    client = api(bob.session)
    for _ in range(2):
        assert client.put(f"{FAVOURITES}/Alice/a", {}, format="json").status_code == 204
    [item] = client.get(FAVOURITES).json()["items"]
    assert (item["handle"], item["tagline"]) == ("alice/a", "Knows")
    assert names(client.get(f"{AGENTS}?favourites=true").json()["items"]) == ["alice/a"]
    assert api(alice.session).get(FAVOURITES).json() == {"items": [], "total": 0}
    for absent in (closed.handle, "alice/none"):
        assert client.put(f"{FAVOURITES}/{absent}", {}, format="json").status_code == 404
    assert client.put(f"{FAVOURITES}/alice/a", {"x": 1}, format="json").status_code == 400
    Agent.objects.filter(handle="alice/a").update(access="private")
    assert client.get(FAVOURITES).json()["total"] == 0, "it was closed to the caller meanwhile"
    Agent.objects.filter(handle="alice/a").update(access="public")
    for _ in range(2):
        assert client.delete(f"{FAVOURITES}/alice/a").status_code == 204
    assert client.get(FAVOURITES).json()["total"] == 0


def test_favourites_are_limited(alice: Person, bob: Person) -> None:
    marked = [make_agent(alice.user, f"a{number:03}") for number in range(limits.FAVOURITES.most)]
    Favourite.objects.bulk_create([Favourite(user=bob.user, agent=agent) for agent in marked])
    one_more = make_agent(alice.user, "more")
    refused = api(bob.session).put(f"{FAVOURITES}/{one_more.handle}", {}, format="json")
    assert (refused.status_code, refused.json()["error"]) == (429, "quota_exceeded")
    browser(bob.session).post(f"/agents/{one_more.handle}/favourite", {"on": "1"})
    assert Favourite.objects.filter(user=bob.user).count() == limits.FAVOURITES.most
    assert api(bob.session).put(f"{FAVOURITES}/{marked[0].handle}", {}, format="json").status_code == 204


def test_agents_that_the_visitor_asked_lately_are_on_the_first_page(alice: Person, bob: Person) -> None:
    first, second, closed = (make_agent(alice.user, name) for name in ("first", "second", "closed"))
    for agent in (first, second, closed, first):
        make_turn(agent, bob.user, depth=0)
    Agent.objects.filter(pk=closed.pk).update(access="private")
    shown = page(visitor=bob).partition("Asked lately")[2].partition("</section>")[0]
    assert shown.index("@alice/first") < shown.index("@alice/second")
    assert "closed" not in shown
    assert "Asked lately" not in page(visitor=alice)
    assert "Asked lately" not in page({"q": "alice"}, bob)
