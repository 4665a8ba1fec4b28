"""The audit log over REST and as files of CSV and JSON lines; what is in it is in tests/data/test_acts.py."""

import json
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry

from accounts.act_export import ROWS_AT_ONCE
from accounts.audit_log import name_rows, record_act
from accounts.models import User
from agents.models import Agent
from hub.jobs import forget_acts
from kit.clock import db_now
from tests.native.desk import file_of, sheet
from tests.native.rows import Person, api, browser, make_agent

pytestmark = pytest.mark.django_db

PAGE = "/admin/admin/logentry/"
LOG = "/api/v1/admin/log"
FIELDS = ["id", "at", "actor", "actorIsStaff", "act", "kind", "objectId", "objectName", "what"]


def listed(reader: Person, **query: str) -> list[tuple[str, str, str]]:
    """Actor, act and text of the entries that a query finds."""
    answer = api(reader.app).get(LOG, query)
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert found["total"] == len(found["items"])
    return [(one["actor"], one["act"], one["what"]) for one in found["items"]]


@pytest.fixture
def two_acts(alice: Person, staff: Person) -> Agent:
    """An agent that its owner unpublished in the admin; and staff suspended the owner."""
    agent = make_agent(alice.user)
    record_act(alice.user, Agent, name_rows([agent]), "unpublish")
    record_act(staff.user, User, name_rows([alice.user]), "suspended")
    return agent


def test_staff_list_the_log_by_actor_kind_and_time(alice: Person, staff: Person, two_acts: Agent) -> None:
    of_owner, of_staff = ("alice", "changed", "unpublish"), ("root", "changed", "suspended")
    assert listed(staff) == [of_staff, of_owner]
    assert listed(staff, actor="ALICE") == listed(staff, staff="false") == [of_owner]
    assert listed(staff, kind="accounts.user") == listed(staff, staff="true") == [of_staff]
    later = (db_now() + timedelta(hours=1)).isoformat()
    assert listed(staff, since=later) == listed(staff, kind="no.table") == []
    assert listed(staff, until=later) == [of_staff, of_owner]
    first = api(staff.app).get(LOG, {"limit": 1, "offset": 1}).json()
    assert (first["total"], list(first["items"][0])) == (2, FIELDS)
    about = {"kind": "agents.agent", "objectId": str(two_acts.pk), "objectName": "@alice/helper"}
    assert first["items"][0].items() >= (about | {"actorIsStaff": False}).items()


@pytest.mark.parametrize("wrong", [{"kind": "x"}, {"since": "soon"}, {"staff": "maybe"}, {"actor": "a" * 200}])
def test_a_filter_that_is_none_is_named(staff: Person, wrong: dict[str, str]) -> None:
    for path in (LOG, f"{LOG}/export"):
        answer = api(staff.app).get(path, wrong)
        assert answer.status_code == 400
        assert next(iter(wrong)) in answer.json()["message"]
    assert not LogEntry.objects.exists()


def test_only_staff_read_the_log(alice: Person, two_acts: Agent) -> None:
    for path in (LOG, f"{LOG}/export"):
        assert api(alice.app).get(path).status_code == 403
    assert browser(alice.session).get(f"{PAGE}export/csv").status_code == 403
    assert LogEntry.objects.count() == 2


def test_no_call_changes_the_log(staff: Person, two_acts: Agent) -> None:
    for path in (LOG, f"{LOG}/export"):
        refused = [getattr(api(staff.app), method)(path) for method in ("post", "put", "patch", "delete")]
        assert {one.status_code for one in refused} == {405}
    assert LogEntry.objects.count() == 2


FORMULA = "=HYPERLINK(1)"


@pytest.mark.django_db(transaction=True)
def test_the_csv_is_whole_and_no_text_in_it_is_a_formula(staff: Person, two_acts: Agent) -> None:
    for _ in range(ROWS_AT_ONCE // 50):
        record_act(staff.user, Agent, [(str(number), "many") for number in range(50)], "rated")
    record_act(staff.user, Agent, [("1", FORMULA)], "-1+1")
    _, head, *rows = sheet(api(staff.app), f"{LOG}/export")
    assert head == FIELDS
    acts = ["'-1+1", *["rated"] * ROWS_AT_ONCE, "suspended", "unpublish"]  # read in two steps
    assert [row[-1] for row in rows] == acts
    assert rows[0][-2] == f"'{FORMULA}"
    newest = api(staff.app).get(LOG, {"limit": 1}).json()["items"][0]
    assert (newest["actor"], newest["act"], newest["what"]) == ("root", "read", "an export as csv")


@pytest.mark.django_db(transaction=True)
def test_json_lines_are_what_the_list_shows(staff: Person, two_acts: Agent) -> None:
    shown = api(staff.app).get(LOG, {"actor": "alice"}).json()["items"]
    saved_as, text = file_of(api(staff.app), f"{LOG}/export?form=jsonl&actor=alice")
    assert [json.loads(line) for line in text.splitlines()] == shown
    assert saved_as == f'attachment; filename="clawbridge-log-{db_now():%Y-%m-%d}.jsonl"'
    assert api(staff.app).get(f"{LOG}/export?form=xml").status_code == 400


@pytest.mark.django_db(transaction=True)
def test_the_page_links_to_files_of_the_filtered_list(staff: Person, two_acts: Agent) -> None:
    admin = browser(staff.session)
    page = admin.get(f"{PAGE}?q=alice&staff=no").content.decode()
    assert f'href="{PAGE}export/csv?q=alice&amp;staff=no"' in page
    assert [row[-1] for row in sheet(admin, f"{PAGE}export/csv?q=alice&staff=no")[2:]] == ["unpublish"]
    lines = file_of(admin, f"{PAGE}export/jsonl?p=1")[1].splitlines()
    assert [json.loads(line)["what"] for line in lines] == ["an export as csv", "suspended", "unpublish"]
    assert admin.get(f"{PAGE}export/xml").status_code == 404
    assert admin.get(f"{PAGE}export/csv?nothing=1").status_code == 400


@pytest.mark.django_db(transaction=True)
def test_an_export_of_an_empty_log_has_its_head_alone(staff: Person) -> None:
    assert sheet(api(staff.app), f"{LOG}/export")[1:] == [FIELDS]


def test_the_log_is_kept_for_good_unless_the_operator_chose_days(staff: Person, two_acts: Agent) -> None:
    old = LogEntry.objects.order_by("pk").first()
    assert old is not None
    LogEntry.objects.filter(pk=old.pk).update(action_time=db_now() - timedelta(days=31))
    assert forget_acts(0) == 0
    assert forget_acts(30) == 1
    assert listed(staff) == [("root", "changed", "suspended")]


def test_that_staff_look_at_a_team_is_an_entry(alice: Person, staff: Person) -> None:
    assert browser(staff.session).get("/desk/team?of=alice").status_code == 200
    assert browser(alice.session).get("/desk/team").status_code == 200
    assert listed(staff) == [("root", "read", "the team's pages")]
