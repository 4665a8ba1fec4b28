"""Halts on the desk and in the admin; what they do to questions is in tests/processes/test_halts.py."""

import pytest
from django.core.management import CommandError, call_command

from agents.models import Agent, Halt
from tests.native.rows import Person, browser

pytestmark = pytest.mark.django_db


def test_an_owner_halts_and_resumes_on_the_desk(alice: Person, bob: Person, agent: Agent) -> None:
    desk, address = browser(alice.session), f"/desk/agents/{agent.pk}"
    page = desk.post(address, {"action": "halt"}, follow=True).content.decode()
    assert "Halted: the hub refuses questions" in page
    assert 'value="resume"' in page
    assert browser(bob.session).post(address, {"action": "halt"}).status_code == 404
    page = desk.post(address, {"action": "resume"}, follow=True).content.decode()
    assert "Halted: the hub" not in page
    (halt,) = Halt.objects.all()
    assert (halt.made_by, halt.lifted_by, halt.by_staff) == (alice.user, alice.user, False)


def test_what_staff_halted_has_no_button(alice: Person, staff: Person, agent: Agent) -> None:
    added = {"kind": "agent", "name": f"@{agent.handle}", "reason": "spam"}
    answer = browser(staff.session).post("/admin/agents/halt/add/", added)
    assert answer.status_code == 302, answer.content
    desk, address = browser(alice.session), f"/desk/agents/{agent.pk}"
    page = desk.get(address).content.decode()
    assert "An administrator halted the agent" in page
    assert 'value="resume"' not in page
    desk.post(address, {"action": "resume"})
    assert Halt.objects.active().count() == 1


def test_staff_lift_halts_in_the_admin_and_the_rows_stay(alice: Person, staff: Person) -> None:
    admin = browser(staff.session)
    for kind in ("owner", "caller"):
        admin.post("/admin/agents/halt/add/", {"kind": kind, "name": "alice", "reason": ""})
    assert Halt.objects.active().count() == 2
    chosen = {"action": "lift", "_selected_action": [str(one.pk) for one in Halt.objects.all()]}
    admin.post("/admin/agents/halt/", chosen)
    assert {one.lifted_by for one in Halt.objects.all()} == {staff.user}
    assert admin.get("/admin/agents/halt/").status_code == 200
    assert admin.get(f"/admin/agents/halt/{Halt.objects.latest('pk').pk}/change/").status_code == 200
    unknown = admin.post("/admin/agents/halt/add/", {"kind": "caller", "name": "nob\0dy"})
    assert browser(alice.session).get("/admin/agents/halt/").status_code == 403
    assert "There is no such user" in unknown.content.decode() or "Null characters" in unknown.content.decode()


@pytest.mark.parametrize("command", ["halt", "resume"])
def test_a_command_names_whom_it_does_not_know(alice: Person, command: str) -> None:
    for option, name, said in (("agent", "alice/nope", "no such agent"), ("owner", "unknown", "no such user")):
        with pytest.raises(CommandError) as refused:
            call_command(command, f"--{option}", name)
        assert str(refused.value) == f"{said}: {name}"
