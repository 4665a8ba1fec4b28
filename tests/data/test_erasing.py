"""One account: nothing of it left."""

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from accounts.models import Credential, User
from accounts.oauth.identity_providers import GitHubProfile
from accounts.oauth.provider_accounts import sign_in_github_user
from agents.jobs import reap
from agents.models import Agent, Blob, Event, Halt, OpMessage, QueuedAsk, Turn
from hub import jobs
from hub.account_data.erasure import CannotClose, close, erase
from hub.account_data.export import pieces
from kit.sql import advisory_lock
from tests.data.rows import OTHERS_WORD, WORD, places_of
from tests.native.rows import Person, api, browser, make_agent, make_turn, person
from tests.plans import plans_of_turns

pytestmark = pytest.mark.django_db

ACCOUNT = "/api/v1/me/account"


def test_nothing_of_an_erased_account_is_left_in_any_table(full_account: Person) -> None:
    before = places_of(WORD)
    assert len(before) >= 40, before
    others = places_of(OTHERS_WORD)
    close(full_account.user.pk)
    assert jobs.erase_closed() == 1
    assert places_of(WORD) == set()
    assert places_of(OTHERS_WORD) == others


def test_no_export_and_no_erasure_reads_all_turns(full_account: Person) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL reads all of a table that is small")
    with plans_of_turns() as plans:
        list(pieces(full_account.user))
        assert erase(close(full_account.user.pk))
    assert "turn_by_caller" in "\n".join(plans)
    assert "SCAN agents_turn" not in "\n".join(plans)


def test_others_keep_their_audit_without_a_name(full_account: Person, bob: Person) -> None:
    asked = Turn.objects.get(caller=full_account.user)
    assert erase(close(full_account.user.pk))
    asked.refresh_from_db()
    assert asked.caller is not None
    assert asked.caller.login.startswith("erased-")
    assert (asked.question, asked.outcome) == ("", "completed")
    kept = Event.objects.get(session=asked.session, type="note")
    assert json.loads(kept.payload)["kept"] == "a plain word"
    told = OpMessage.objects.get(session=asked.session)
    assert (told.author, told.text) == (bob.user, f"{asked.caller.login}, look")
    assert not Agent.objects.filter(owner=full_account.user).exists()
    assert Blob.objects.count() == 1  # that of the other account


def test_tokens_die_and_agents_go_at_once(full_account: Person, bob: Person) -> None:
    handle = Agent.objects.get(owner=full_account.user).handle
    close(full_account.user.pk)
    for token in (full_account.session, full_account.app):
        assert api(token).get("/api/v1/me").status_code == 401
    assert api(bob.session).get(f"/api/v1/agents/by-handle/{handle}").status_code == 404
    assert not Credential.objects.live().filter(user=full_account.user).exists()
    assert not full_account.user.client_grants.live().exists()


def test_login_and_github_id_are_free_at_once(full_account: Person) -> None:
    login, github_id = full_account.user.login, full_account.user.github_id
    assert github_id is not None
    close(full_account.user.pk)
    again = sign_in_github_user(
        GitHubProfile(id=github_id, login=login, avatar_url=None), is_member=lambda org: True
    )
    assert again.pk != full_account.user.pk
    assert jobs.erase_closed() == 1
    again.refresh_from_db()
    assert (again.login, again.github_id) == (login, github_id)


def test_the_last_administrator_stays(alice: Person, staff: Person) -> None:
    with pytest.raises(CannotClose):
        close(staff.user.pk)
    refused = api(staff.session).delete(f"{ACCOUNT}?login=root")
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert browser(staff.session).post("/account/erase", {"login": "root"}).status_code == 409
    assert api(staff.session).get("/api/v1/me").status_code == 200
    person("chief", is_staff=True)
    close(staff.user.pk)


def test_who_was_halted_by_staff_does_not_come_back_as_a_new_user(alice: Person) -> None:
    halt = Halt.objects.create(kind="caller", user=alice.user, by_staff=True)
    assert api(alice.session).delete(f"{ACCOUNT}?login=alice").status_code == 409
    halt.lifted_at = timezone.now()
    halt.save()
    assert api(alice.session).delete(f"{ACCOUNT}?login=alice").status_code == 204


def test_the_operator_erases_whom_staff_halted(alice: Person, capsys: pytest.CaptureFixture[str]) -> None:
    Halt.objects.create(kind="owner", user=alice.user, by_staff=True)
    call_command("erase_account", login="alice", yes=True)
    assert capsys.readouterr().out == "@alice is erased\n"
    assert User.objects.get().former_login == ""
    assert not Halt.objects.exists()


def test_erasing_takes_the_login_and_a_session(alice: Person, bob: Person) -> None:
    wanted = f"{ACCOUNT}?login=alice"
    assert api(alice.app).delete(wanted).status_code == 403
    assert api(None).delete(wanted).status_code == 401
    assert api(bob.session).delete(wanted).status_code == 400
    for wrong in (ACCOUNT, f"{ACCOUNT}?login=", f"{ACCOUNT}?login=%00", f"{ACCOUNT}?login=bob"):
        assert api(alice.session).delete(wrong).status_code == 400, wrong
    assert api(alice.session).delete(wanted).status_code == 204
    assert api(alice.session).delete(wanted).status_code == 401
    assert User.objects.filter(closed_at=None).count() == 1


def test_erasing_on_the_page_takes_the_typed_login(alice: Person) -> None:
    page = browser(alice.session)
    assert "Type <strong>alice</strong>" in page.get("/account/erase").content.decode()
    for wrong in ("", "bob", "alice\0", "Alice"):
        assert page.post("/account/erase", {"login": wrong}).status_code == 400, wrong
    assert Client().post("/account/erase", {"login": "alice"})["Location"].startswith("/signin")
    done = page.post("/account/erase", {"login": "@alice"})
    assert (done.status_code, done["Location"]) == (302, "/")
    assert User.objects.named("alice") is None


def test_an_account_with_an_open_question_waits_for_its_end(alice: Person, bob: Person) -> None:
    turn = make_turn(make_agent(bob.user), alice.user, outcome=None)
    close(alice.user.pk)
    assert jobs.erase_closed() == 0
    Turn.objects.filter(pk=turn.pk).update(outcome="failed", settled_at=turn.asked_at, released_at=turn.asked_at)
    assert jobs.erase_closed() == 1
    assert jobs.erase_closed() == 0


def test_an_account_whose_question_waits_for_its_agent_waits_for_its_end(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user)
    now = timezone.now()
    times = {"queued_at": now, "waits_until": now}
    waits = QueuedAsk.objects.create(
        agent=agent, session=agent.session, caller=alice.user, chat_id="c", home="gone", question=WORD, **times
    )
    close(alice.user.pk)
    assert jobs.erase_closed() == 0
    reap()
    assert not QueuedAsk.objects.filter(pk=waits.pk).exists()
    assert jobs.erase_closed() == 1
    assert Turn.objects.get(chat_id="c").question == ""


@contextmanager
def failing(user: User) -> Iterator[None]:
    """Fail each query for this user's questions."""

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT") and Turn._meta.db_table in sql and user.pk in params:
            raise OperationalError("as when a statement takes too long")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        yield


def test_one_account_that_fails_does_not_keep_others_from_being_erased(
    alice: Person, bob: Person, carol: Person, caplog: pytest.LogCaptureFixture
) -> None:
    for one in (alice, bob, carol):
        close(one.user.pk)
    with failing(bob.user):
        assert jobs.erase_closed() == 2
    assert [one.user_id for one in caplog.records if one.message == "account.not_erased"] == [bob.user.pk]  # type: ignore[attr-defined]
    assert list(User.objects.exclude(former_login="")) == [bob.user]
    assert jobs.erase_closed() == 1


@contextmanager
def another_erases() -> Iterator[None]:
    """On a connection of its own, until the block ends."""
    begun, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with advisory_lock("erasing") as is_alone:
            assert is_alone
            begun.set()
            ended.wait(30)
        connection.close()

    with ThreadPoolExecutor(1) as thread:
        held = thread.submit(hold)
        assert begun.wait(10)
        try:
            yield
        finally:
            ended.set()
        held.result()


def test_the_command_leaves_it_to_the_hub_that_erases_just_now(
    alice: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite one process erases")
    with another_erases():
        call_command("erase_account", login="alice", yes=True)
    assert "the hub erases the rest" in capsys.readouterr().out
    assert User.objects.get().former_login == "alice"
    assert jobs.erase_closed() == 1


def noted(staff: Person, name: str = "", message: str = "") -> LogEntry:
    kind = ContentType.objects.get_for_model(User)
    return LogEntry.objects.create(
        user=staff.user, content_type=kind, object_repr=name, action_flag=2, change_message=message
    )


def test_the_record_of_staff_forgets_the_name(staff: Person) -> None:
    al = person("al")
    make_agent(al.user, "helper")
    long = noted(staff, name="@al " + "x" * 196)
    names = ("al", "@al/helper", "alice", "@hal/helper", "@al-2/helper", "@hal")
    messages = {
        "a list: q=al": "a list: q=(erased)",
        "a list: q=%40al%2Fhelper+so&outcome=failed": "a list: q=(erased)+so&outcome=failed",
        "a list: q=alice%40&al=1": "a list: q=alice%40&al=1",
        "halted al's agents": "halted (erased)'s agents",
        "halted @al/helper": "halted (erased)",
        "halted alice's questions": "halted alice's questions",
        '[{"changed": {"fields": ["Is active"]}}]': '[{"changed": {"fields": ["Is active"]}}]',
    }
    entries = [noted(staff, name=name) for name in names] + [noted(staff, message=one) for one in messages]
    assert erase(close(al.user.pk))
    for entry in (*entries, long):
        entry.refresh_from_db()
    named, said = entries[: len(names)], entries[len(names) :]
    assert [one.object_repr for one in named] == ["(erased)"] * 2 + list(names[2:])
    assert [one.change_message for one in said] == list(messages.values())
    assert long.object_repr == "(erased) " + "x" * 191  # within its column


def test_erasing_again_changes_nothing_of_others(alice: Person, staff: Person) -> None:
    closed = close(alice.user.pk)
    assert erase(closed)
    entry = noted(staff, message="a list: q=bob")
    call_command("erase_account", login=closed.login, yes=True)
    entry.refresh_from_db()
    assert (entry.object_repr, entry.change_message) == ("", "a list: q=bob")


def test_the_command_counts_first_and_changes_nothing(
    full_account: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    before = "".join(pieces(full_account.user)).splitlines()[1:]
    with pytest.raises(CommandError, match="--yes"):
        call_command("erase_account", login=full_account.user.login)
    said = re.findall(r"^ +(\d+) (\w+)$", capsys.readouterr().out, re.MULTILINE)
    tables = Counter(json.loads(line)["table"] for line in before[:-1])
    assert {name: int(count) for count, name in said} == tables
    assert "".join(pieces(full_account.user)).splitlines()[1:] == before
