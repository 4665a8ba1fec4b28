"""The pages of failures, and the same over REST; and rules of alerts over REST."""

from datetime import timedelta
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.core.alerts import watch_agents
from agents.core.failure_groups import group_failures, set_state
from agents.models import Agent, Alert, AlertRule, FailureGroup, Turn
from tests.native.rows import Person, api, browser, make_agent
from tests.native.test_failure_groups import fail


def failing(
    owner: Person, caller: Person, text: str = "no disk 1", slug: str = "helper"
) -> tuple[Agent, FailureGroup]:
    agent = make_agent(owner.user, slug)
    fail(agent, caller.user, text, question="where is it?")
    group_failures()
    return agent, FailureGroup.objects.get(agent=agent)


def page(person: Person, path: str) -> str:
    return browser(person.session).get(path).content.decode()


def test_the_list_shows_the_groups_of_a_state_and_an_agent(alice: Person, bob: Person) -> None:
    assert "No failures" in page(alice, "/desk/failures")
    failing(alice, bob)
    _, other = failing(alice, bob, "no memory", "other")
    set_state(other.pk, "resolved")
    shown = page(alice, "/desk/failures")
    assert "no disk &lt;number&gt;" in shown
    assert "no memory" not in shown
    assert "Open (1)" in shown
    assert "Resolved (1)" in shown
    assert "no memory" in page(alice, "/desk/failures?state=all")
    assert "None in this state" in page(alice, "/desk/failures?state=ignored")
    assert "No failures of this agent" in page(alice, "/desk/failures?agent=alice/none")
    assert "no memory" in page(alice, "/desk/failures?state=resolved&agent=@Alice/other")
    for odd in ("state=x", "page=x", "agent=%00", f"agent={'x' * 500}"):
        assert browser(alice.session).get(f"/desk/failures?{odd}").status_code == 200
    assert "no disk" not in page(bob, "/desk/failures?state=all")


def test_the_pages_stay_small_and_read_few_rows(alice: Person, bob: Person) -> None:
    agents = [make_agent(alice.user, f"agent-{number}") for number in range(30)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    for agent in agents:
        for letter in letters[:10]:
            fail(agent, bob.user, f"{letter * 200} is away")
    for number in range(100):
        fail(agents[0], bob.user, f"{'word ' * 60}{number}", question="why? " * 200)
    group_failures()
    with CaptureQueriesContext(connection) as few:
        assert len(page(alice, "/desk/failures")) < 60_000
    many = FailureGroup.objects.get(agent=agents[0], count=100)
    with CaptureQueriesContext(connection) as one:
        assert len(page(alice, f"/desk/failures/{many.pk}")) < 60_000
    assert (len(few), len(one)) < (12, 12)


def test_a_group_is_shown_to_its_owner_alone_who_changes_its_state(alice: Person, bob: Person) -> None:
    agent, group = failing(alice, bob)
    path = f"/desk/failures/{group.pk}"
    shown = page(alice, path)
    asked = Turn.objects.get(failure_group=group).chat_id
    for text in (
        "no disk &lt;number&gt;",
        "no disk 1",
        "where is it?",
        "@bob",
        "1 time",
        f'href="/questions/{asked}"',
    ):
        assert text in shown
    assert browser(bob.session).get(path).status_code == 404
    assert browser(bob.session).post(path, {"state": "ignored"}).status_code == 404
    assert browser(alice.session).post(path, {"state": "resolved"}).status_code == 302
    group.refresh_from_db()
    assert group.state == "resolved"
    browser(alice.session).post(path, {"state": "nonsense"})
    fail(agent, bob.user, "no disk 2", settled_at=timezone.now() + timedelta(seconds=1))
    group_failures()
    assert "open again since" in page(alice, path)
    Agent.objects.filter(pk=agent.pk).update(deleted_at=timezone.now())
    assert browser(alice.session).get(path).status_code == 404


def test_rest_lists_shows_and_changes_failures(alice: Person, bob: Person) -> None:
    agent, group = failing(alice, bob)
    client = api(alice.session)
    [listed] = client.get("/api/v1/failures?agent=@Alice/helper&state=open").json()["items"]
    assert listed["text"] == "no disk <number>"
    assert (listed["handle"], listed["count"], listed["callers"]) == (agent.handle, 1, 1)
    whole = client.get(f"/api/v1/failures/{group.pk}").json()
    assert [one["text"] for one in whole["recent"]] == ["no disk 1"]
    assert whole["topCallers"] == [{"login": "bob", "count": 1}]
    assert sum(one["count"] for one in whole["days"]) == 1
    changed = client.patch(f"/api/v1/failures/{group.pk}", {"state": "resolved"}, format="json").json()
    assert (changed["state"], changed["resolvedAt"] is None) == ("resolved", False)
    assert client.get("/api/v1/failures?state=open").json() == {"items": [], "total": 0}
    for wrong in ({}, {"state": "gone"}, {"state": "open", "count": 1}):
        assert client.patch(f"/api/v1/failures/{group.pk}", wrong, format="json").status_code == 400
    assert api(bob.session).get(f"/api/v1/failures/{group.pk}").status_code == 404
    assert client.get("/api/v1/failures?state=x").status_code == 400


def rules(client: Any) -> dict[str, int]:
    return {one["kind"]: one["threshold"] for one in client.get("/api/v1/alert-rules").json()["items"]}


def test_rest_sets_the_rules_of_alerts(alice: Person, bob: Person) -> None:
    client = api(alice.session)
    assert rules(client) == {}
    for kind, threshold in (("new_failure", 3), ("budget", 80), ("budget", 90)):
        put = client.put(f"/api/v1/alert-rules/{kind}", {"threshold": threshold}, format="json")
        assert put.json() == {"kind": kind, "threshold": threshold}
    assert rules(client) == {"budget": 90, "new_failure": 3}
    for wrong in ({"threshold": 0}, {"threshold": 101}, {}, {"threshold": "x"}):
        assert client.put("/api/v1/alert-rules/budget", wrong, format="json").status_code == 400
    assert client.put("/api/v1/alert-rules/nothing", {"threshold": 1}, format="json").status_code == 404
    for _ in range(2):
        assert client.delete("/api/v1/alert-rules/budget").status_code == 204
    assert (rules(client), rules(api(bob.session))) == ({"new_failure": 3}, {})


def test_a_new_failure_is_alerted_once_and_ends_when_it_is_resolved(alice: Person, bob: Person) -> None:
    AlertRule.objects.create(owner=alice.user, kind="new_failure", threshold=2)
    agent, group = failing(alice, bob)
    assert watch_agents() == 0, "it occurred once"
    fail(agent, bob.user, "no disk 2")
    group_failures()
    assert [watch_agents(), watch_agents()] == [1, 0]
    alert = Alert.objects.get()
    assert (alert.kind, alert.failure_group_id, alert.value) == ("new_failure", group.pk, 2)
    assert f'/desk/failures/{group.pk}">@alice/helper fails in a new way: no disk &lt;number&gt;</a>' in page(
        alice, "/desk/alerts"
    )
    set_state(group.pk, "resolved")
    assert watch_agents() == 1
    assert Alert.objects.get().ended_at is not None
    for number in (3, 4):
        fail(agent, bob.user, f"no disk {number}", settled_at=timezone.now() + timedelta(seconds=1))
    group_failures()
    assert watch_agents() == 1, "it is back"


def test_old_failures_begin_no_alert(alice: Person, bob: Person) -> None:
    failing(alice, bob)
    FailureGroup.objects.update(opened_at=timezone.now() - timedelta(hours=2))
    AlertRule.objects.create(owner=alice.user, kind="new_failure", threshold=1)
    assert watch_agents() == 0


def test_an_agent_has_few_alerts_about_new_failures_at_once(alice: Person, bob: Person) -> None:
    AlertRule.objects.create(owner=alice.user, kind="new_failure", threshold=1)
    agent = make_agent(alice.user)
    for letter in "abcdefghijklmno":
        fail(agent, bob.user, f"no {letter}")
    group_failures()
    assert [watch_agents(), watch_agents()] == [10, 0]
