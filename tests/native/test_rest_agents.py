"""Agents over REST: publishing, revising, deleting, and who may."""

import threading
import uuid
from typing import Any

import pytest
from django.db import connections

from accounts.models import Credential
from accounts.tokens import mint
from agents.core import directory
from agents.models import Agent, Session
from tests.native.rows import Person, api, browser, connect, make_agent, make_session, make_turn, names, patch
from tests.webhooks.subscriptions import happen, subscribed
from webhooks.models import Delivery

AGENTS = "/api/v1/agents"
FIELDS = {
    *("id", "handle", "ownerLogin", "sessionId", "routingName", "name", "tagline", "description", "status"),
    *("access", "online", "isolated", "concurrencyCap", "dailyBudgetQueries", "callerBudgetQueries", "waitS"),
    *("agentStyle", "queriesToday", "queriesAllTime", "lastQueryAt", "publishedAt", "createdAt", "taskStore"),
    *(
        "callerApprovals",
        "callerSharing",
        "claudeMd",
        "personalizationPrompt",
        "liveView",
        "publicAsk",
        "liveViewEnabledAt",
    ),
    "tags",
    *("suggestedPrompts", "skills", "defaultInputModes", "defaultOutputModes", "maxBodyBytes", "queueing"),
}
COSTS = {"dailyCostLimitUsd", "callerCostLimitUsd", "costTodayUsd"}
OWNERS_FIELDS = FIELDS | {"allowedLogins", "callerBudgets"} | COSTS


def publish(person: Person, session: Any, **body: Any) -> Any:
    return api(person.session).post(
        AGENTS,
        {"sessionId": str(session.public_id), "name": "Helper", "status": "published", **body},
        format="json",
    )


def test_publishing_a_session_answers_the_agent_with_its_defaults(alice: Person) -> None:
    session = make_session(alice.user, "notes")
    connect(session)
    answer = publish(alice, session, tagline="Knows things", suggestedPrompts=["What is new?"], claudeMd="# Notes")
    assert answer.status_code == 201
    agent = answer.json()
    expected = {
        **{"handle": "alice/notes", "ownerLogin": "alice", "sessionId": str(session.public_id)},
        **{"routingName": "@notes", "online": True, "isolated": True, "restored": False},
        **{"dailyBudgetQueries": 1000, "concurrencyCap": 5, "waitS": None, "agentStyle": "hybrid"},
        **{"queriesToday": 0, "queriesAllTime": 0, "lastQueryAt": None},
        **{"liveView": False, "publicAsk": False, "liveViewEnabledAt": None},
        **{"claudeMd": "# Notes", "personalizationPrompt": None, "suggestedPrompts": ["What is new?"]},
    }
    assert {name: agent[name] for name in expected} == expected
    assert set(agent) == OWNERS_FIELDS | {"restored"}
    assert agent["createdAt"].endswith("Z")
    assert agent["publishedAt"].endswith("Z")


def test_an_agent_is_a_public_draft_unless_asked_otherwise(alice: Person) -> None:
    body = {"sessionId": str(make_session(alice.user).public_id), "name": "Helper"}
    answer = api(alice.session).post(AGENTS, body, format="json").json()
    assert (answer["status"], answer["publishedAt"]) == ("draft", None)
    assert (answer["access"], answer["allowedLogins"]) == ("public", [])


def test_a_slug_not_written_as_one_is_refused(alice: Person) -> None:
    for slug in ["My-Agent", "my agent", "-agent", "a/b", "@agent", "", "x" * 65, "ag\0ent"]:
        answer = publish(alice, make_session(alice.user), slug=slug)
        assert answer.status_code == 400, slug
        assert answer.json()["error"] == "validation_failed", slug
        assert answer.json()["message"].startswith("slug: "), slug


def test_a_session_carries_one_agent(alice: Person, session: Session) -> None:
    publish(alice, session, slug="first")
    for slug in (None, "first", "second"):
        answer = publish(alice, session, slug=slug)
        assert answer.status_code == 409
        assert answer.json() == {
            "error": "conflict",
            "message": "the session is published as @alice/first already",
        }


def test_a_handle_carries_one_agent(alice: Person) -> None:
    publish(alice, make_session(alice.user), slug="taken")
    answer = publish(alice, make_session(alice.user), slug="taken")
    assert answer.status_code == 409
    assert answer.json()["message"] == (
        "@alice/taken is yours already, on another session: move it (on its edit page, or PATCH sessionId)"
    )


def test_publishing_a_deleted_handle_again_restores_it_with_its_log(alice: Person) -> None:
    old = make_agent(alice.user, "notes", tagline="From before", isolated=False)
    old.soft_delete()
    session = make_session(alice.user)
    answer = publish(alice, session, slug="notes", name="Again").json()
    assert (answer["id"], answer["restored"]) == (old.pk, True)
    assert (answer["sessionId"], answer["name"], answer["status"]) == (
        str(session.public_id),
        "Again",
        "published",
    )
    assert answer["tagline"] == "From before"
    assert answer["isolated"] is True


def test_a_handle_is_never_handed_over_to_another_owner(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "notes").soft_delete()
    alice.user.login = "alice-moved"
    alice.user.save()
    bob.user.login = "alice"
    bob.user.save()
    answer = publish(bob, make_session(bob.user), slug="notes")
    assert answer.status_code == 409
    assert Agent.objects.get().owner == alice.user


@pytest.mark.django_db(transaction=True)
def test_of_two_who_publish_one_session_at_once_one_wins(alice: Person, session: Session) -> None:
    barrier, won, lost = threading.Barrier(2), [], []

    def race(slug: str) -> None:
        barrier.wait()
        try:
            won.append(directory.publish_agent(alice.user, session, {"name": "x"}, slug=slug))
        except directory.HandleTaken as taken:
            lost.append(taken)
        finally:
            connections.close_all()

    racers = [threading.Thread(target=race, args=[slug]) for slug in ("one", "two")]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert (len(won), len(lost)) == (1, 1)


def test_a_patch_changes_what_it_names_and_nothing_else(alice: Person) -> None:
    agent = make_agent(alice.user, tagline="old", daily_budget=7)
    answer = patch(alice, agent, tagline="new", suggestedPrompts=["a", "b"], personalizationPrompt="be kind")
    assert answer.status_code == 200
    assert answer.json()["tagline"] == "new"
    assert answer.json()["suggestedPrompts"] == ["a", "b"]
    assert answer.json()["personalizationPrompt"] == "be kind"
    assert answer.json()["dailyBudgetQueries"] == 7
    assert patch(alice, agent, queueing={"max": 3}).json()["queueing"] == {"max": 3, "waitS": 60}


def test_a_patch_to_draft_hides_the_agent_from_others_at_once(alice: Person, bob: Person, agent: Agent) -> None:
    assert names(api(bob.session).get(AGENTS).json()["items"]) == ["alice/helper"]
    patch(alice, agent, status="draft")
    assert api(bob.session).get(AGENTS).json()["items"] == []
    assert api(bob.session).get(f"{AGENTS}/by-handle/alice/helper").status_code == 404
    assert api(alice.session).get(f"{AGENTS}/by-handle/alice/helper").status_code == 200


GOOD_AND_BAD = [
    ("name", "n" * 120, "n" * 121),
    ("name", "n", ""),
    ("tagline", "t" * 160, "t" * 161),
    ("tagline", "t", "t\0"),
    ("description", "d" * 4096, "d" * 4097),
    ("status", "draft", "archived"),
    ("dailyBudgetQueries", 100_000, 100_001),
    ("dailyBudgetQueries", 0, -1),
    ("dailyBudgetQueries", 5, "many"),
    ("waitS", 3600, 3601),
    ("waitS", 1, 0),
    ("waitS", None, "soon"),
    ("waitS", 60, 9**99),
    ("agentStyle", "task-generating", "chatty"),
    ("agentStyle", "hybrid", None),
    ("agentStyle", "hybrid", "hybrid\0"),
    ("queueing", {"max": 50, "waitS": 600}, {"max": 51}),
    ("queueing", None, {"waitS": 5}),
    ("queueing", {"max": 1, "waitS": 1}, {"max": 1, "waitS": 0}),
    ("taskStore", "journal", "disk"),
    ("taskStore", None, "redis"),
    ("concurrencyCap", 20, 21),
    ("concurrencyCap", 1, 0),
    ("isolated", False, None),
    ("suggestedPrompts", ["p"] * 6, ["p"] * 7),
    ("tags", [f"t{number}" for number in range(10)], [f"t{number}" for number in range(11)]),
    ("tags", ["a-1" + "b" * 29], ["b" * 33]),
    ("tags", [], ["Upper"]),
    ("tags", [], ["two words"]),
    ("tags", [], ['a"b']),
    ("suggestedPrompts", ["p" * 400], ["p" * 401]),
    ("suggestedPrompts", [], "p"),
    ("claudeMd", "c" * 65_536, "c" * 65_537),
    ("claudeMd", None, ["c"]),
    ("liveView", False, True),
    ("publicAsk", False, True),
]


def test_a_patch_takes_the_good_value_and_names_the_field_of_the_bad(alice: Person, agent: Agent) -> None:
    for field, good, bad in GOOD_AND_BAD:
        assert patch(alice, agent, **{field: good}).status_code == 200, (field, str(bad)[:40])
        answer = patch(alice, agent, **{field: bad})
        assert answer.status_code == 400, (field, str(bad)[:40])
        assert answer.json()["error"] == "validation_failed", (field, str(bad)[:40])
        assert answer.json()["message"].startswith(field), (field, str(bad)[:40])


def test_the_slug_is_fixed_at_publishing(alice: Person, agent: Agent) -> None:
    assert patch(alice, agent, slug="helper", sessionId=str(agent.session.public_id)).status_code == 200
    answer = patch(alice, agent, slug="other")
    assert answer.status_code == 400
    assert "fixed at publishing" in answer.json()["message"]


def test_an_agent_moves_to_another_session_of_its_owner(alice: Person, bob: Person) -> None:
    agent, other, foreign = make_agent(alice.user), make_session(alice.user, "laptop"), make_session(bob.user)
    refused = {patch(alice, agent, sessionId=str(one)).content for one in (foreign.public_id, uuid.uuid4())}
    assert len(refused) == 1  # another user's session looks like an absent one
    assert patch(alice, agent, sessionId=str(foreign.public_id)).status_code == 404
    assert patch(bob, agent, sessionId=str(foreign.public_id)).status_code == 404
    turn = make_turn(agent, bob.user, None)
    busy = patch(alice, agent, name="Renamed", sessionId=str(other.public_id))
    assert (busy.status_code, "question to the agent is open" in busy.json()["message"]) == (409, True)
    turn.delete()
    moved = patch(alice, agent, name="Renamed", sessionId=str(other.public_id))
    assert (moved.status_code, moved.json()["sessionId"]) == (200, str(other.public_id))
    agent.refresh_from_db()
    assert (agent.session, agent.name, agent.handle) == (other, "Renamed", "alice/helper")


def test_a_deleted_agent_is_gone_for_all_users_and_its_handle_is_free(alice: Person, agent: Agent) -> None:
    answer = api(alice.session).delete(f"{AGENTS}/{agent.pk}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert api(alice.session).get(f"{AGENTS}?mine=true").json() == {"items": [], "total": 0}
    assert api(alice.session).delete(f"{AGENTS}/{agent.pk}").status_code == 404
    assert publish(alice, make_session(alice.user), slug="helper").status_code == 201


SKILL = {"id": "chess", "name": "Chess", "tags": ["games"], "examples": ["e4?"], "outputModes": ["image/png"]}


def test_its_skills_and_modes_are_those_of_its_card(alice: Person) -> None:
    shown = {
        "skills": [SKILL, {"id": "go", "name": "Go"}],
        "defaultInputModes": ["application/json", "text/plain"],
        "defaultOutputModes": ["text/plain", "text/markdown"],
        "maxBodyBytes": 4096,
    }
    answer = publish(alice, make_session(alice.user, "player"), **shown)
    assert answer.status_code == 201, answer.content
    assert {name: answer.json()[name] for name in shown} == shown
    for version in ("", "1.0"):
        path = "/api/a2a/v1/agents/alice/player/.well-known/agent-card.json"
        card = browser().get(path, headers={"A2A-Version": version}).json()
        assert card["defaultInputModes"] == ["application/json", "text/plain"]
        assert card["defaultOutputModes"] == ["text/plain", "text/markdown"]
        chess, go = card["skills"]
        assert chess == SKILL | {"description": "Chess", "inputModes": ["application/json", "text/plain"]}
        assert (go["description"], go["tags"], "examples" in go) == ("Go", ["chat"], False)
    agent = Agent.objects.at("alice/player").get()
    assert patch(alice, agent, skills=[], defaultOutputModes=[], maxBodyBytes=None).status_code == 200
    assert [one["id"] for one in browser().get(path).json()["skills"]] == ["ask"]


def test_a_card_that_callers_could_not_use_is_refused(alice: Person, agent: Agent) -> None:
    for body, named in [
        ({"skills": [{"id": "a"}]}, "skills[0].name"),
        ({"skills": [{"id": "a", "name": "A"}] * 2}, "skills: skill ids must differ: a is used twice"),
        ({"skills": [{"id": "a", "name": "A", "inputModes": ["png"]}]}, "skills[0].inputModes"),
        ({"skills": [{"id": "a", "name": "A", "description": "x" * 4097}]}, "skills[0].description"),
        ({"skills": [{"id": "a", "name": "A", "colour": "red"}]}, "skills[0].colour: there is no such field"),
        ({"skills": [{"id": str(n), "name": "A"} for n in range(21)]}, "skills"),
        ({"skills": {"id": "a"}}, "skills"),
        ({"defaultInputModes": ["text/html"]}, "defaultInputModes"),
        ({"defaultOutputModes": ["image/png"]}, "defaultOutputModes"),
        ({"defaultOutputModes": ["plain text"]}, "defaultOutputModes"),
        ({"maxBodyBytes": 100}, "maxBodyBytes"),
        ({"maxBodyBytes": 1_048_577}, "maxBodyBytes"),
    ]:
        answer = patch(alice, agent, **body)
        assert answer.status_code == 400, named
        assert named in answer.json()["message"], named


def test_a_field_that_is_not_there_is_named(alice: Person, agent: Agent) -> None:
    unknown = patch(alice, agent, name="New", restPath="/x", scopes=["ask"])
    assert (unknown.status_code, unknown.json()["error"]) == (400, "validation_failed")
    assert unknown.json()["message"] == "restPath: there is no such field scopes: there is no such field"
    odd = b'{"\\ud83d\\ude00%s": 1}' % (b"x" * 200)
    answer = api(alice.session).patch(f"{AGENTS}/{agent.pk}", odd, content_type="application/json")
    assert answer.json()["message"] == "\\U0001f600" + "x" * 63 + ": there is no such field"
    assert Agent.objects.get(pk=agent.pk).name == agent.name
    same = {"slug": agent.slug, "sessionId": str(agent.session.public_id), "tagline": "As it was"}
    assert patch(alice, agent, **same).status_code == 200
    place = {"cardUrl": "https://x.example", "auth": {"scheme": "Bearer", "credentials": "c", "realm": "r"}}
    nested = api(alice.session).post(f"{AGENTS}/cards", place, format="json")
    assert nested.json()["message"] == "auth.realm: there is no such field"


def test_a_call_that_takes_no_field_refuses_all(alice: Person) -> None:
    session, hook = make_session(alice.user), subscribed(alice.user).subscription
    happen(alice.user)
    delivery = Delivery.objects.get()
    other = mint(alice.user, Credential.Kind.SESSION, "other").credential
    client = api(alice.session)
    for path in (
        f"sessions/{session.public_id}/archive",
        f"webhooks/{hook.pk}/test",
        f"webhooks/{hook.pk}/roll-secret",
        f"webhooks/{hook.pk}/deliveries/{delivery.pk}/replay",
        f"auth-sessions/{other.digest[:12]}/revoke",
    ):
        answer = client.post(f"/api/v1/{path}", {"really": True}, format="json")
        assert (answer.status_code, answer.json()["message"]) == (400, "really: there is no such field"), path
        assert client.post(f"/api/v1/{path}", {}, format="json").status_code in (200, 202, 409), path
    bodiless = client.post(f"/api/v1/webhooks/{hook.pk}/test")
    assert bodiless.status_code == 202, bodiless.content
