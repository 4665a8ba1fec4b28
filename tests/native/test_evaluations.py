"""Sets of saved questions over REST and on the desk; runs are in tests/surfaces/test_evaluations.py."""

import json
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.core.directory import revise_agent
from agents.models import Agent
from evaluations.jobs import forget_runs, start_due
from evaluations.models import EvaluationResult, EvaluationRun, QuestionSet
from evaluations.service import runs
from evaluations.service.asking import (
    MAX_OPEN,
    MAX_OPEN_OF_OWNER,
    AskedQuestion,
    QuestionToAsk,
    ResultOutbox,
)
from evaluations.service.completion import end_if_complete
from kit.clock import db_now
from kit.outbox import AttemptResult, Sender, SendLimits, lease
from lab.waiting import until
from tests.native.rows import Person, api, browser, make_agent

pytestmark = pytest.mark.django_db
EVALUATIONS = "/api/v1/evaluations"
ASKED = {"text": "When do you open?", "expected": "contains", "expectation": "nine"}
State = EvaluationResult.State


def make_set(person: Person, of: Agent, **body: Any) -> Any:
    wanted = {"agent": of.handle, "name": "Hours", "questions": [ASKED]} | body
    return api(person.session).post(EVALUATIONS, wanted, format="json")


def change(person: Person, set_id: int, **body: Any) -> Any:
    return api(person.session).patch(f"{EVALUATIONS}/{set_id}", body, format="json")


def start(person: Person, set_id: int) -> Any:
    return api(person.session).post(f"{EVALUATIONS}/{set_id}/runs")


def end_run(run_id: int, state: State = State.PASSED) -> None:
    """End a run as the hub does, without agents."""
    EvaluationResult.objects.filter(run=run_id).update(
        state=state, next_attempt_at=None, asked="c1", answer="We open at nine.", ended_at=db_now()
    )
    end_if_complete(run_id)


def test_a_set_is_made_changed_and_deleted(alice: Person) -> None:
    made = make_set(alice, make_agent(alice.user)).json()
    assert (made["agent"], made["schedule"], made["dailyBudget"], made["latestRun"]) == (
        "alice/helper",
        "off",
        100,
        None,
    )
    [question] = made["questions"]
    assert {**ASKED, "id": question["id"], "judge": ""} == question
    revised = change(
        alice,
        made["id"],
        schedule="daily",
        questions=[{**ASKED, "text": "And on Sunday?"}, {**question, "expectation": "ten"}],
    ).json()
    assert [(one["text"], one["expectation"]) for one in revised["questions"]] == [
        ("And on Sunday?", "nine"),
        ("When do you open?", "ten"),
    ]
    assert revised["questions"][1]["id"] == question["id"]
    assert revised["nextRunAt"] is not None
    listed = api(alice.session).get(f"{EVALUATIONS}?agent=@alice/helper").json()
    assert [(one["name"], one["questions"]) for one in listed["items"]] == [("Hours", 2)]
    assert change(alice, made["id"], schedule="off", dailyBudget=5).json()["nextRunAt"] is None
    assert api(alice.session).delete(f"{EVALUATIONS}/{made['id']}").status_code == 204
    assert not QuestionSet.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"questions": [{**ASKED, "expected": "matches", "expectation": "(?=a)"}]}, "RE2"),
        ({"questions": [{**ASKED, "expected": "matches", "expectation": "(x{1000}){1000}"}]}, "RE2"),
        ({"questions": [{**ASKED, "expected": "json_schema", "expectation": "{"}]}, "JSON Schema"),
        (
            {"questions": [{**ASKED, "expected": "json_schema", "expectation": '{"$ref": "file:///"}'}]},
            "inside",
        ),
        ({"questions": [{**ASKED, "expected": "json_schema", "expectation": '{"pattern": "(a+)+$"}'}]}, "pattern"),
        ({"questions": [{**ASKED, "expected": "judged"}]}, "judge"),
        ({"questions": [{**ASKED, "expected": "judged", "judge": "bob/absent"}]}, "judge"),
        ({"questions": [{**ASKED, "expected": "judged", "judge": "@alice/helper"}]}, "another agent"),
        ({"questions": [{**ASKED, "expected": "smells"}]}, "expected"),
        ({"questions": [{**ASKED, "id": 1}]}, "no such question"),
        ({"questions": [ASKED] * 101}, "100 questions"),
        ({"questions": [{"more": 1}] * 101}, "100 questions"),
        ({"agent": "bob/helper"}, "agent"),
        ({"name": ""}, "name"),
        ({"dailyBudget": 0}, "dailyBudget"),
        ({"schedule": "every second"}, "schedule"),
        ({"more": 1}, "more"),
    ],
)
def test_a_set_of_another_form_is_refused(alice: Person, bob: Person, body: dict[str, Any], field: str) -> None:
    make_agent(bob.user)
    refused = make_set(alice, make_agent(alice.user), **body)
    assert refused.status_code in (400, 429)
    assert field in json.dumps(refused.json())
    assert not QuestionSet.objects.exists()


def test_an_account_has_a_limited_number_of_sets_and_a_name_stands_once(alice: Person) -> None:
    agent = make_agent(alice.user)
    assert make_set(alice, agent).status_code == 201
    assert make_set(alice, agent).status_code == 409
    QuestionSet.objects.bulk_create([QuestionSet(agent=agent, name=f"n{number}") for number in range(99)])
    assert make_set(alice, agent, name="more").status_code == 429


def test_a_set_of_another_owner_is_absent(alice: Person, bob: Person) -> None:
    made = make_set(alice, make_agent(alice.user)).json()
    run = start(alice, made["id"]).json()
    address = f"{EVALUATIONS}/{made['id']}"
    one_run = f"{address}/runs/{run['id']}"
    absent = api(bob.session).get(f"{EVALUATIONS}/999999")
    for method, path, body in (
        ("get", address, None),
        ("patch", address, {"name": "mine"}),
        ("delete", address, None),
        ("get", f"{address}/runs", None),
        ("post", f"{address}/runs", None),
        ("get", one_run, None),
        ("post", f"{one_run}/stop", None),
    ):
        other = getattr(api(bob.session), method)(path, body, format="json")
        assert (other.status_code, other.json()) == (404, absent.json()), path
    for page in ("", "/settings", "/questions/new", f"/runs/{run['id']}"):
        assert browser(bob.session).get(f"/desk/evaluations/{made['id']}{page}").status_code == 404
    assert api(bob.session).get(EVALUATIONS).json()["total"] == 0
    assert EvaluationRun.objects.get().ended_at is None


def test_a_set_runs_once_at_a_time_and_is_stopped(alice: Person) -> None:
    agent = make_agent(alice.user)
    made = make_set(alice, agent).json()
    run = start(alice, made["id"]).json()
    assert (run["cause"], run["waiting"], run["endedAt"]) == ("by_hand", 1, None)
    assert start(alice, made["id"]).status_code == 409
    stopped = api(alice.session).post(f"{EVALUATIONS}/{made['id']}/runs/{run['id']}/stop").json()
    assert (stopped["stopped"], stopped["leftOut"], stopped["endedAt"] is None) == (True, 1, False)
    again = api(alice.session).post(f"{EVALUATIONS}/{made['id']}/runs/{run['id']}/stop").json()
    assert again == stopped
    change(alice, made["id"], questions=[])
    assert "add one" in start(alice, made["id"]).json()["message"]
    revise_agent(agent.pk, {"status": "draft"})
    assert "publish" in start(alice, made["id"]).json()["message"]


def test_a_schedule_starts_a_run_when_it_is_due_and_leaves_out_missed_times(alice: Person) -> None:
    made = make_set(alice, make_agent(alice.user), schedule="hourly").json()
    assert start_due() == 0
    late = db_now() - timedelta(hours=5, minutes=10)
    QuestionSet.objects.update(due_at=late)
    assert (start_due(), start_due()) == (1, 0)
    assert EvaluationRun.objects.get().cause == "schedule"
    due = QuestionSet.objects.get(pk=made["id"]).due_at
    assert due == late + timedelta(hours=6)


def test_a_new_card_starts_one_run(alice: Person) -> None:
    agent = make_agent(alice.user)
    made = make_set(alice, agent, runsOnNewCard=True).json()
    make_set(alice, agent, name="Other")
    assert start_due() == 0
    revise_agent(agent.pk, {"daily_budget": 7})  # no card says this
    assert start_due() == 0
    revise_agent(agent.pk, {"description": "Knows the opening hours."})
    assert (start_due(), start_due()) == (1, 0)
    run = EvaluationRun.objects.get()
    assert (run.cause, run.question_set_id) == ("card", made["id"])
    revise_agent(agent.pk, {"description": "Knows more."})  # while the run goes on
    assert start_due() == 0
    end_run(run.pk)
    assert start_due() == 1


def test_a_set_that_is_marked_later_does_not_run_for_an_earlier_change(alice: Person) -> None:
    agent = make_agent(alice.user)
    made = make_set(alice, agent).json()
    revise_agent(agent.pk, {"description": "Knows the opening hours."})
    change(alice, made["id"], runsOnNewCard=True)
    assert start_due() == 0


def test_results_stand_side_by_side_for_each_version(alice: Person) -> None:
    agent = make_agent(alice.user)
    made = make_set(alice, agent).json()
    for state, text in ((State.NOT_PASSED, "one"), (State.PASSED, "two")):
        revise_agent(agent.pk, {"description": text})
        for _ in range(2):
            end_run(start(alice, made["id"]).json()["id"], state)
    page = browser(alice.session).get(f"/desk/evaluations/{made['id']}").content.decode()
    table = page[page.index("<table>") : page.index("</table>")]
    assert table.count('<th scope="col">') == 1 + 2
    assert table.index("badge good") < table.index("badge bad")
    assert '/questions/c1"' in table
    latest = browser(alice.session).get(f"/desk/evaluations/{made['id']}?by=run").content.decode()
    assert latest[: latest.index("</table>")].count('<th scope="col">') == 1 + 4
    one = api(alice.session).get(f"{EVALUATIONS}/{made['id']}/runs").json()
    assert (one["total"], len({run["cardDigest"] for run in one["items"]})) == (4, 2)
    whole = api(alice.session).get(f"{EVALUATIONS}/{made['id']}/runs/{one['items'][0]['id']}").json()
    assert [(result["state"], result["routeId"]) for result in whole["results"]] == [("passed", "c1")]


def test_a_changed_question_marks_its_earlier_results(alice: Person) -> None:
    made = make_set(alice, make_agent(alice.user)).json()
    end_run(start(alice, made["id"]).json()["id"])
    address = f"/desk/evaluations/{made['id']}"
    assert "before you changed it" not in browser(alice.session).get(address).content.decode()
    change(alice, made["id"], questions=[{**made["questions"][0], "expectation": "ten"}])
    assert "before you changed it" in browser(alice.session).get(address).content.decode()


def test_a_set_and_its_questions_are_edited_on_pages(alice: Person) -> None:
    make_agent(alice.user)
    client = browser(alice.session)
    made = client.post("/desk/evaluations", {"agent": "@alice/helper", "name": "Hours <b>"})
    set_id = QuestionSet.objects.get().pk
    assert (made.status_code, made["Location"]) == (302, f"/desk/evaluations/{set_id}/questions/new")
    address = f"/desk/evaluations/{set_id}"
    form = {"text": "When?\r\nExactly.", "expected": "matches", "expectation": "[", "judge": ""}
    refused = client.post(f"{address}/questions/new", form)
    assert (refused.status_code, "RE2" in refused.content.decode()) == (400, True)
    added = client.post(f"{address}/questions/new", form | {"expectation": "n.ne", "another": "1"})
    assert added["Location"] == f"{address}/questions/new"
    question = QuestionSet.objects.get().questions.get()
    assert question.text == "When?\nExactly."
    assert client.post(f"{address}/questions/{question.pk}", form | {"expectation": "t.n"}).status_code == 302
    saved = client.post(f"{address}/settings", {"name": "New", "schedule": "weekly", "daily_budget": "7"})
    assert saved["Location"] == address
    row = QuestionSet.objects.get()
    assert (row.name, row.schedule, row.daily_budget, row.due_at is None) == ("New", "weekly", 7, False)
    assert client.post(f"{address}/settings", {"name": "", "schedule": "x"}).status_code == 400
    client.post(address, {"action": "run"})
    text = client.get(address).content.decode()
    assert ("0 of 1 questions" in text, "Stop the run" in text) == (True, True)
    client.post(address, {"action": "stop"})
    assert EvaluationRun.objects.get().is_stopped
    client.post(f"{address}/questions/{question.pk}", {"delete": "1"})
    assert "No question yet" in client.get(address).content.decode()
    client.post(f"{address}/settings", {"delete": "1"})
    assert "No saved questions yet" in client.get("/desk/evaluations").content.decode()


def test_a_user_without_an_agent_is_told_what_to_do(carol: Person) -> None:
    page = browser(carol.session).get("/desk/evaluations").content.decode()
    assert ("No agent yet" in page, "Make the set" in page) == (True, False)
    assert browser(carol.session).post("/desk/evaluations", {"agent": "x\0", "name": "n"}).status_code == 400


def test_a_list_of_sets_takes_as_many_statements_as_one_set(alice: Person) -> None:
    agent, counts = make_agent(alice.user), []
    for number in range(3):
        made = make_set(alice, agent, name=f"n{number}").json()
        end_run(start(alice, made["id"]).json()["id"])
        with CaptureQueriesContext(connection) as queries:
            browser(alice.session).get("/desk/evaluations")
            api(alice.session).get(EVALUATIONS)
        counts.append(len(queries))
    assert counts[1] == counts[2]


def test_the_budget_of_a_day_is_spent_once(alice: Person) -> None:
    set_id = make_set(alice, make_agent(alice.user), dailyBudget=3).json()["id"]
    assert [runs.spend(set_id, 2), runs.spend(set_id, 2), runs.spend(set_id, 1)] == [True, False, True]
    runs.give_back(set_id, 2)
    assert api(alice.session).get(f"{EVALUATIONS}/{set_id}").json()["asksToday"] == 1
    QuestionSet.objects.update(spent_on=db_now().date() - timedelta(days=1))
    assert api(alice.session).get(f"{EVALUATIONS}/{set_id}").json()["asksToday"] == 0
    assert runs.spend(set_id, 3)


def test_old_runs_and_those_beyond_the_limit_are_deleted(alice: Person) -> None:
    set_id = make_set(alice, make_agent(alice.user)).json()["id"]
    now = db_now()
    ages = [timedelta(days=100), *(timedelta(minutes=number) for number in range(205))]
    EvaluationRun.objects.bulk_create(
        [
            EvaluationRun(question_set_id=set_id, cause="by_hand", started_at=now - age, ended_at=now)
            for age in ages
        ]
    )
    start(alice, set_id)
    assert forget_runs(90) == 1 + 6
    assert EvaluationRun.objects.count() == 200


def test_a_run_that_waits_for_a_deleted_question_ends(alice: Person) -> None:
    made = make_set(alice, make_agent(alice.user), questions=[ASKED, {**ASKED, "text": "And on Sunday?"}]).json()
    address, [first, second] = f"/desk/evaluations/{made['id']}", made["questions"]
    start(alice, made["id"])
    browser(alice.session).post(f"{address}/questions/{first['id']}", {"delete": "1"})
    assert EvaluationRun.objects.get().ended_at is None
    browser(alice.session).post(f"{address}/questions/{second['id']}", {"delete": "1"})
    assert EvaluationRun.objects.get().ended_at is not None
    change(alice, made["id"], questions=[ASKED])
    assert start(alice, made["id"]).status_code == 201
    change(alice, made["id"], questions=[ASKED])  # without its id: another question
    assert not EvaluationRun.objects.filter(ended_at=None).exists()
    assert start(alice, made["id"]).status_code == 201


def test_a_run_that_waits_for_nothing_ends_by_itself(alice: Person) -> None:
    made = make_set(alice, make_agent(alice.user)).json()
    start(alice, made["id"])
    start_due()
    assert EvaluationRun.objects.get().ended_at is None
    EvaluationResult.objects.all().delete()
    start_due()
    assert EvaluationRun.objects.get().ended_at is not None


def test_schemas_of_one_body_are_checked_within_one_bound(alice: Person) -> None:
    # 2^11 empty schemas are applied to a value: each schema takes less than it may alone.
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(1, 11)} | {"d11": {}}
    schema = {"allOf": [{"$ref": "#/$defs/d1"}] * 2, "$defs": defs}
    costly = {**ASKED, "expected": "json_schema", "expectation": json.dumps(schema)}
    plain = {
        **ASKED,
        "expected": "json_schema",
        "expectation": json.dumps(
            {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20)}}
        ),
    }
    agent = make_agent(alice.user)
    assert make_set(alice, agent, questions=[plain] * 100).status_code == 201
    began = time.thread_time()
    refused = make_set(alice, agent, name="costly", questions=[costly] * 100)
    assert (refused.status_code, "so far took too long" in json.dumps(refused.json())) == (400, True)
    assert time.thread_time() - began < 20  # 2 s, and the reading of the body


def test_four_questions_of_an_owner_are_leased_at_once_by_all_senders(alice: Person) -> None:
    agent = make_agent(alice.user)
    for number in range(MAX_OPEN_OF_OWNER + 2):
        start(alice, make_set(alice, agent, name=f"n{number}", questions=[ASKED, ASKED]).json()["id"])
    outbox, limits = ResultOutbox(None, None), SendLimits(ResultOutbox)  # type: ignore[arg-type]  nothing is sent
    first = lease(outbox, limits)
    assert len({one.row.run_id for one in first}) == len(first) == MAX_OPEN_OF_OWNER
    assert lease(outbox, limits) == []
    limits.leave(first[0].row)
    assert len(lease(outbox, limits)) == 1
    assert lease(outbox, limits) == []


@pytest.mark.parametrize("text", ["What does it say? ", "営業時間は"])
def test_the_pages_of_the_largest_set_are_short(alice: Person, text: str) -> None:
    agent, counts = make_agent(alice.user), []
    question = {**ASKED, "text": text * 200, "expectation": text * 100}
    made = make_set(alice, agent, questions=[question] * 100).json()
    for version in range(6):
        revise_agent(agent.pk, {"description": f"v{version}"})
        run_id = start(alice, made["id"]).json()["id"]
        end_run(run_id)
        EvaluationResult.objects.update(asked="c" * 64, answer=text * 400, detail=(text * 100)[:500])
        with CaptureQueriesContext(connection) as queries:
            browser(alice.session).get(f"/desk/evaluations/{made['id']}")
        counts.append(len(queries))
    assert counts[1] == counts[5]
    change(alice, made["id"], questions=[{**one, "expectation": "ten"} for one in made["questions"]])
    client, seen = browser(alice.session), 0
    for number in range(1, 5):
        page = client.get(f"/desk/evaluations/{made['id']}?by=run&questions={number}").content
        assert len(page) < 120_000
        assert page.count(b"before you changed it") == 25 * 6
        seen += page.count(b'<th scope="row">')
    assert seen == 100
    assert f"?by=run&amp;questions={3}#results".encode() in page
    for number in range(1, 6):
        page = client.get(f"/desk/evaluations/{made['id']}/runs/{run_id}?page={number}").content
        assert len(page) < 120_000
        assert page.count(b'class="answer"') == 20


@pytest.mark.django_db(transaction=True)
def test_a_question_counts_until_its_answer_also_after_its_sender_has_left(alice: Person) -> None:
    ended, stopping = threading.Event(), threading.Event()

    class HeldOutbox(ResultOutbox):
        def send(self, prepared: QuestionToAsk) -> AttemptResult:
            stopping.set()  # the sender leaves
            ended.wait(20)
            return AskedQuestion(is_success=True, state=State.PASSED)

    start(alice, make_set(alice, make_agent(alice.user)).json()["id"])
    limits = SendLimits(HeldOutbox)
    assert Sender(HeldOutbox(None, None), stopping, limits).run() == 0  # type: ignore[arg-type]  nothing is asked
    assert limits.left == MAX_OPEN - 1
    ended.set()
    until(lambda: limits.left == MAX_OPEN, "the answer is stored", within_s=20)
    assert EvaluationRun.objects.get().ended_at is not None
