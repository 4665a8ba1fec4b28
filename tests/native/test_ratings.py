"""Ratings of answers over REST and on the desk; over A2A and MCP they are in tests/surfaces/test_rating.py."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.core.ratings import find_ratings
from agents.jobs import retain
from agents.models import Rating, Turn
from agents.models.choices import Outcome
from tests.native.rows import Person, api, browser, make_agent, make_turn
from tests.webhooks.subscriptions import subscribed
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db


def asked(owner: Person, caller: Person, outcome: Outcome = Outcome.COMPLETED) -> Turn:
    """A question of a caller to an agent of another user."""
    agent = make_agent(owner.user, f"rated-{outcome}")
    return make_turn(agent, caller.user, question="how long?", outcome=outcome)


def put(person: Person, chat_id: str, **body: Any) -> Any:
    return api(person.session).put(f"/api/v1/questions/{chat_id}/rating", body, format="json")


def test_a_caller_rates_an_answer_changes_the_thumb_and_takes_it_away(alice: Person, bob: Person) -> None:
    turn = asked(bob, alice)
    address = f"/api/v1/questions/{turn.chat_id}/rating"
    client = api(alice.session)
    assert client.get(address).json() == {
        **{"id": turn.chat_id, "agent": turn.asked},
        **{"rating": None, "note": "", "ratedAt": None},
    }
    assert put(alice, turn.chat_id, rating="up").json()["rating"] == "up"
    changed = put(alice, turn.chat_id, rating="down", note="too short").json()
    assert (changed["rating"], changed["note"]) == ("down", "too short")
    assert client.delete(address).status_code == client.delete(address).status_code == 204
    assert client.get(address).json()["rating"] is None


def test_an_answer_is_found_by_its_task(alice: Person, bob: Person, carol: Person) -> None:
    turn = asked(bob, alice)
    Turn.objects.filter(pk=turn.pk).update(task_id="task-rated")
    assert put(alice, "task-rated", rating="up").json()["id"] == turn.chat_id
    assert put(carol, "task-rated", rating="up").status_code == 404


@pytest.mark.parametrize("body", [{}, {"rating": "great"}, {"rating": "up", "note": "x" * 1001}, {"rating": None}])
def test_a_rating_of_another_form_is_refused(alice: Person, bob: Person, body: dict[str, Any]) -> None:
    turn = asked(bob, alice)
    assert put(alice, turn.chat_id, **body).status_code == 400
    assert not Rating.objects.exists()


def test_an_answer_of_another_caller_a_failure_and_no_answer_look_alike(
    alice: Person, bob: Person, carol: Person
) -> None:
    turn, failed = asked(bob, alice), asked(bob, alice, Outcome.FAILED)
    passed_on = make_turn(turn.agent, alice.user, outcome=Outcome.COMPLETED)
    Turn.objects.filter(pk=passed_on.pk).update(depth=1)
    put(alice, turn.chat_id, rating="up")
    absent = put(carol, "no-such-ask", rating="down")
    assert absent.status_code == 404
    for person, chat_id in ((carol, turn.chat_id), (bob, turn.chat_id), (alice, failed.chat_id)):
        for method in ("get", "put", "delete"):
            body = {"data": {"rating": "down"}, "format": "json"} if method == "put" else {}
            refused = getattr(api(person.session), method)(f"/api/v1/questions/{chat_id}/rating", **body)
            assert (refused.status_code, refused.json()) == (404, absent.json()), method
    assert put(alice, passed_on.chat_id, rating="down").status_code == 404
    assert Rating.objects.get().is_good


def test_the_owner_reads_the_ratings_and_their_rate(alice: Person, bob: Person, carol: Person) -> None:
    agent = make_agent(bob.user, "rated")
    for person, thumb, note in ((alice, "up", ""), (carol, "down", "wrong <b>year</b>")):
        turn = make_turn(agent, person.user, question="which year?", outcome=Outcome.COMPLETED)
        assert put(person, turn.chat_id, rating=thumb, note=note).status_code == 200
    client = api(bob.session)
    rate = client.get(f"/api/v1/agents/{agent.pk}/rating").json()
    assert (rate["up"], rate["all"], [(one["up"], one["all"]) for one in rate["days"]]) == (1, 2, [(1, 2)])
    listed = client.get(f"/api/v1/agents/{agent.pk}/ratings").json()
    assert [(one["askerLogin"], one["rating"], one["note"]) for one in listed["items"]] == [
        ("carol", "down", "wrong <b>year</b>"),
        ("alice", "up", ""),
    ]
    for path in ("rating", "ratings"):
        assert api(alice.session).get(f"/api/v1/agents/{agent.pk}/{path}").status_code == 404
    page = browser(bob.session).get(f"/desk/agents/{agent.pk}/ratings")
    text = page.content.decode()
    assert ("50 %" in text, "wrong &lt;b&gt;year" in text, "@carol" in text) == (True, True, True)
    only_up = browser(bob.session).get(f"/desk/agents/{agent.pk}/ratings?show=up").content.decode()
    assert ("@carol" in only_up, "@alice" in only_up) == (False, True)
    assert browser(alice.session).get(f"/desk/agents/{agent.pk}/ratings").status_code == 404


def test_an_agent_without_ratings_has_a_page(bob: Person) -> None:
    agent = make_agent(bob.user, "unrated")
    assert "No ratings yet" in browser(bob.session).get(f"/desk/agents/{agent.pk}/ratings").content.decode()


def test_a_list_of_ratings_takes_as_many_statements_as_one_rating(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user, "rated")
    counts = []
    for _ in range(3):
        turn = make_turn(agent, alice.user, outcome=Outcome.COMPLETED)
        put(alice, turn.chat_id, rating="up", note="fine")
        with CaptureQueriesContext(connection) as queries:
            browser(bob.session).get(f"/desk/agents/{agent.pk}/ratings")
        counts.append(len(queries))
    assert counts[1] == counts[2]
    assert len(find_ratings([turn.chat_id], alice.user.pk)) == 1


def test_the_owner_is_told_by_a_webhook_once_for_each_change(alice: Person, bob: Person) -> None:
    subscribed(bob.user, "answer.rated")
    turn = asked(bob, alice)
    for thumb in ("up", "up", "down"):
        put(alice, turn.chat_id, rating=thumb, note="so")
    told = [one.payload for one in Delivery.objects.filter(type="answer.rated").order_by("pk")]
    assert ['"rating": "up"' in one or '"rating":"up"' in one for one in told] == [True, False]


def test_a_rating_goes_with_its_turn(alice: Person, bob: Person) -> None:
    turn = asked(bob, alice)
    put(alice, turn.chat_id, rating="up")
    turn.delete()
    retain(400)
    assert not Rating.objects.exists()
