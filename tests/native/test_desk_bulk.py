"""Several agents are published, unpublished, halted and resumed at once: on the desk and by REST."""

from typing import Any

from django.test import Client

from agents.core.halt_rules import HaltSubject, halt_subject
from agents.models import Agent, Halt
from tests.native.desk import text
from tests.native.rows import Person, api, browser, make_agent

BULK = "/api/v1/agents/bulk"


def halt(agent: Agent, *, by_staff: bool) -> None:
    halt_subject(HaltSubject(Halt.Kind.AGENT, agent=agent), by=agent.owner, by_staff=by_staff)


def statuses(*agents: Agent) -> list[str]:
    return [Agent.objects.get(pk=agent.pk).status for agent in agents]


def results(answer: Any) -> dict[str, str]:
    assert answer.status_code == 200, answer.content
    return {one["handle"]: one["result"] for one in answer.json()["results"]}


def test_a_look_changes_nothing_and_the_form_reports_what_it_changed(alice: Person, signed_in: Client) -> None:
    draft, there = make_agent(alice.user, "draft", "draft"), make_agent(alice.user, "there")
    chosen: dict[str, Any] = {"action": "unpublish", "agent": [draft.pk, there.pk]}
    look = text(signed_in, "/desk/bulk", **chosen)
    assert "Unpublish 1 agent?" in look
    assert "a draft already" in look
    assert "will be unpublished" in look
    assert statuses(draft, there) == ["draft", "published"]
    done = signed_in.post("/desk/bulk", chosen).content.decode()
    assert "1 agent unpublished" in done
    assert "@alice/there" in done
    assert statuses(draft, there) == ["draft", "draft"]
    assert "0 agents unpublished" in signed_in.post("/desk/bulk", chosen).content.decode()


def test_halting_stands_until_its_owner_resumes_but_for_an_administrators(alice: Person) -> None:
    own, by_staff = make_agent(alice.user, "own"), make_agent(alice.user, "staffs")
    client = api(alice.session)
    ids = [own.pk, by_staff.pk]
    halt(by_staff, by_staff=True)
    halted = client.post(BULK, {"action": "halt", "ids": ids}, format="json")
    assert results(halted) == {"alice/own": "changed", "alice/staffs": "same"}
    assert text(browser(alice.session), "/desk").count(">halted<") == 2
    resumed = client.post(BULK, {"action": "resume", "ids": ids}, format="json")
    assert results(resumed) == {"alice/own": "changed", "alice/staffs": "kept"}
    assert [one.agent_id for one in Halt.objects.active()] == [by_staff.pk]


def test_only_ones_own_agents_are_changed_by_rest(alice: Person, bob: Person) -> None:
    mine, foreign, gone = make_agent(alice.user, "mine"), make_agent(bob.user), make_agent(alice.user, "gone")
    gone.soft_delete()
    body = {"action": "unpublish", "ids": [mine.pk, foreign.pk, gone.pk, 10**9, mine.pk]}
    for token in (alice.channel, None):
        assert api(token).post(BULK, body, format="json").status_code in (401, 403)
    answer = api(alice.session).post(BULK, body, format="json")
    assert results(answer) == {"alice/mine": "changed"}
    assert answer.json()["absent"] == sorted([foreign.pk, gone.pk, 10**9])
    assert statuses(mine, foreign) == ["draft", "published"]


def test_another_owners_agents_are_not_on_the_page(bob: Person, signed_in: Client) -> None:
    foreign = make_agent(bob.user, "foreign")
    chosen: dict[str, Any] = {"action": "unpublish", "agent": [foreign.pk]}
    for page in (text(signed_in, "/desk/bulk", **chosen), signed_in.post("/desk/bulk", chosen).content.decode()):
        assert "No agent chosen" in page
        assert "foreign" not in page
    assert statuses(foreign) == ["published"]


def test_nonsense_chooses_no_agent(signed_in: Client) -> None:
    for chosen in [
        {},
        {"action": "publish"},
        {"action": "delete", "agent": ["1"]},
        {"action": "halt", "agent": ["", "x", "-1", "٣", "\0", "9" * 4000]},
    ]:
        assert "No agent chosen" in text(signed_in, "/desk/bulk", **chosen), chosen
        assert "No agent chosen" in signed_in.post("/desk/bulk", chosen).content.decode(), chosen


def test_a_wrong_body_is_refused(alice: Person) -> None:
    for body in [
        {"action": "delete", "ids": [1]},
        {"action": "halt", "ids": []},
        {"action": "halt", "ids": [0]},
        {"action": "halt", "ids": [10**30]},
        {"action": "halt", "ids": ["one"]},
        {"action": "halt", "ids": list(range(1, 202))},
        {"ids": [1]},
        [],
    ]:
        assert api(alice.session).post(BULK, body, format="json").status_code == 400, body
