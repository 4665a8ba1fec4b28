"""Sessions as rows: their states, limits and errors, by service functions, REST and the command line."""

import io
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from agents.models import Process
from gateway.models import HeldEntry, SessionEntry, SessionLog, TeamPolicy
from gateway.service import session_files, session_recording, session_rows
from gateway.service.session_entries import LogEntry, Place, PlacedEntry, hold, make_place, seal_content
from gateway.service.session_rows import SessionUser
from gateway.wire.errors import FrameRefused
from hub.account_data.erasure import close, erase
from hub.account_data.export import pieces
from kit import sql
from tests.gateway.lowered import lower
from tests.native.rows import Person, api, browser, make_session, person

pytestmark = pytest.mark.django_db
WORD = "something that is said in confidence"


@pytest.fixture
def alice() -> Person:
    return person("alice")


@pytest.fixture
def bob() -> Person:
    return person("bob")


@pytest.fixture
def owner(alice: Person) -> SessionUser:
    """The owner of the agents alpha and beta."""
    for name in ("alpha", "beta"):
        make_session(alice.user, name, link="gateway")
    return SessionUser(alice.user.pk, alice.user.login)


def agent(owner: SessionUser, name: str) -> SessionUser:
    return SessionUser(owner.owner_id, owner.login, name)


def say(owner: SessionUser, *texts: str, session_id: str = "s-1", sender: str = "alpha") -> None:
    place = make_place(owner.owner_id, owner.login, sender, "beta", session_id)
    ids = [f"m-{number}" for number in range(1, len(texts) + 1)]
    session_recording.write_records(hold_entries(place, "own", dict(zip(ids, texts, strict=True))))


def hold_entries(place: Place, process_id: str, texts: Mapping[str, str]) -> list[PlacedEntry]:
    """Entries that a process holds, by their ids."""
    made = []
    for number, (entry_id, text) in enumerate(texts.items(), 1):
        entry = LogEntry(timestamp_ms=number, role="user", content=text, id=entry_id)
        one = PlacedEntry(place, entry, f"{process_id}-{entry_id}", seal_content(text))
        sql.rows(*hold(one, process_id))
        made.append(one)
    return made


def code_of(function: Any, *args: Any) -> tuple[int, str]:
    with pytest.raises(FrameRefused) as refused:
        function(*args)
    return int(refused.value.code), refused.value.reason


def texts_of(user: SessionUser, name: str, session_id: str) -> list[object]:
    return [entry["content"] for entry in session_rows.get_entries(user, name, session_id)["entries"]]


def set_age(session_id: str, age: timedelta) -> None:
    for log in SessionLog.objects.filter(session_id=session_id):
        log.last_entry_at -= age
        log.created_at -= age
        log.save()


def test_entries_are_sealed_in_order_and_paged(owner: SessionUser) -> None:
    say(owner, WORD, "two", "three")
    assert not SessionEntry.objects.filter(content__contains="confidence").exists()
    for user, name in ((owner, "alpha"), (agent(owner, "beta"), "beta")):
        assert texts_of(user, name, "s-1") == [WORD, "two", "three"]
    first = session_rows.get_entries(owner, "beta", "s-1", limit=2)
    rest = session_rows.get_entries(owner, "beta", "s-1", limit=2, after=first["next"])
    assert [one["id"] for page in (first, rest) for one in page["entries"]] == ["m-1", "m-2", "m-3"]
    assert "next" not in rest


def test_an_agent_reads_its_own_sessions_and_the_owner_all(owner: SessionUser, bob: Person) -> None:
    say(owner, "hi")
    alpha, stranger = agent(owner, "alpha"), SessionUser(bob.user.pk, "bob")
    assert [one["agent"] for one in session_rows.list_sessions(owner)["sessions"]] == ["alpha", "beta"]
    assert [one["agent"] for one in session_rows.list_sessions(alpha)["sessions"]] == ["alpha"]
    changes = (session_rows.commit_session, session_rows.delete_session)
    for function in (session_rows.get_entries, *changes, session_files.export_session):
        assert code_of(function, alpha, "beta", "s-1") == (5004, "")
        # Another owner's agent, and one that is not there, look the same.
        assert code_of(function, stranger, "beta", "s-1") == code_of(function, owner, "gamma", "s-1") == (3001, "")
        assert code_of(function, owner, "beta", "s-9") == (4001, "")
    assert session_rows.list_sessions(stranger)["sessions"] == []


def test_a_session_is_committed_archived_and_deleted(owner: SessionUser) -> None:
    say(owner, "hi")
    for _ in range(2):
        done = session_rows.commit_session(owner, "beta", "s-1")
        assert (done.state, done.entries) == ("committed", 1)
    say(owner, "more")
    assert SessionLog.objects.get(agent="beta").state == "active"
    for _ in range(2):
        assert session_rows.archive_session(owner, "beta", "s-1").state == "archived"
    assert [one["agent"] for one in session_rows.list_sessions(owner)["sessions"]] == ["alpha"]
    assert len(session_rows.list_sessions(owner, archived=True)["sessions"]) == 2
    assert texts_of(owner, "beta", "s-1") == ["hi", "more"]
    place = make_place(owner.owner_id, owner.login, "alpha", "beta", "s-1")
    assert code_of(session_rows.check_sessions, place) == (4002, "archived")
    session_rows.delete_session(owner, "beta", "s-1")
    assert code_of(session_rows.delete_session, owner, "beta", "s-1") == (4001, "")
    assert SessionEntry.objects.filter(log__agent="beta").count() == 0


def test_archiving_takes_old_sessions_and_reports_the_others(owner: SessionUser) -> None:
    for session_id in ("old", "locked", "young"):
        session_rows.create_session(owner, "beta", session_id, 60_000 if session_id == "locked" else 0)
    for session_id in ("old", "locked"):
        set_age(session_id, timedelta(days=8))
    beta = agent(owner, "beta")
    done = session_rows.archive_older(beta, "", session_rows.read_age("7d"))
    assert [one["id"] for one in done["archived"]] == ["old"]
    assert [(one["id"], one["reason"]) for one in done["skipped"]] == [("locked", "locked"), ("young", "active")]
    for age in ("", "7", "d", "0d", "-1d", "7y", "7 d", "1.5h", "9" * 40 + "d"):
        assert code_of(session_rows.read_age, age) == (2005, "")
    assert session_rows.read_age("2w") == timedelta(days=14)


def test_an_expired_session_takes_no_messages(owner: SessionUser) -> None:
    say(owner, "hi")
    TeamPolicy.objects.create(owner_id=owner.owner_id, session_ttl_s=3600)
    place = make_place(owner.owner_id, owner.login, "alpha", "beta", "s-1")
    session_rows.check_sessions(place)
    set_age("s-1", timedelta(hours=2))
    assert code_of(session_rows.check_sessions, place) == (4002, "")
    assert texts_of(owner, "beta", "s-1") == ["hi"]


def test_the_gateways_own_session_is_followed_by_another_when_it_takes_no_more(owner: SessionUser) -> None:
    say(owner, "one", session_id="")
    say(owner, "two", session_id="")
    (first,) = SessionLog.objects.filter(agent="beta")
    assert first.entries == 2
    session_rows.archive_session(owner, "beta", first.session_id)
    say(owner, "three", session_id="")
    say(owner, "four", session_id="")
    second = SessionLog.objects.filter(agent="beta").latest("pk")
    assert texts_of(owner, "beta", second.session_id) == ["three", "four"]
    assert SessionLog.objects.get(agent="alpha").entries == 4


def test_a_session_that_is_locked_has_one_writer(owner: SessionUser) -> None:
    say(owner, "hi")
    beta = agent(owner, "beta")
    session_rows.commit_session(beta, "beta", "s-1", 60_000)
    for function in (session_rows.commit_session, session_rows.archive_session, session_rows.delete_session):
        assert code_of(function, owner, "beta", "s-1") == (4003, "")
    place = make_place(owner.owner_id, owner.login, "alpha", "beta", "s-1")
    assert code_of(session_rows.check_sessions, place) == (4003, "")
    session_rows.commit_session(beta, "beta", "s-1")  # ends its lock
    session_rows.check_sessions(place)
    session_rows.commit_session(beta, "beta", "s-1", 60_000)
    SessionLog.objects.update(locked_until=session_rows.db_now())  # as when the time is over
    session_rows.delete_session(owner, "beta", "s-1")


@pytest.mark.parametrize("damage", ["unreadable", "entries_missing"])
def test_damage_concerns_one_session_alone(owner: SessionUser, damage: str) -> None:
    say(owner, "hi", "ho")
    last = SessionEntry.objects.filter(log__agent="beta").latest("pk")
    if damage == "unreadable":
        SessionEntry.objects.filter(pk=last.pk).update(content="gAAAA-damaged")
    else:
        last.delete()
    for function in (session_rows.commit_session, session_files.export_session):
        assert code_of(function, owner, "beta", "s-1") == (4004, damage)
    assert texts_of(owner, "alpha", "s-1") == ["hi", "ho"]
    session_rows.commit_session(owner, "alpha", "s-1")


def test_a_session_with_too_many_entries_is_compacted(owner: SessionUser, monkeypatch: Any) -> None:
    monkeypatch.setattr(session_recording, "MAX_ENTRIES", 10)
    for number in range(25):
        say(owner, f"text {number}")
    log = SessionLog.objects.get(agent="beta")
    assert log.entries == SessionEntry.objects.filter(log=log).count() <= 10
    assert log.bytes == sum(SessionEntry.objects.filter(log=log).values_list("bytes", flat=True))
    said = texts_of(owner, "beta", "s-1")
    assert said[0] == f"{log.compacted} earlier entries of this session were removed: it had too many"
    assert said[1:] == [f"text {number}" for number in range(log.compacted, 25)]
    session_rows.commit_session(owner, "beta", "s-1")


def test_a_team_with_too_many_sessions_loses_the_oldest_and_archived_ones_first(
    owner: SessionUser, monkeypatch: Any
) -> None:
    for session_id in ("first", "second", "third"):
        say(owner, "hi", session_id=session_id, sender="")
    session_rows.archive_session(owner, "beta", "second")
    lower(monkeypatch, TEAM_SESSIONS=3)
    say(owner, "hi", session_id="fourth", sender="")
    left = session_rows.list_sessions(owner, archived=True)["sessions"]
    assert [one["id"] for one in left] == ["first", "third", "fourth"]
    lower(monkeypatch, TEAM_SESSIONS_TEXT=SessionLog.objects.get(session_id="third").bytes)
    say(owner, "hi", session_id="fourth", sender="")
    assert [one["id"] for one in session_rows.list_sessions(owner)["sessions"]] == ["fourth"]
    lower(monkeypatch, TEAM_SESSIONS=1)
    assert code_of(session_rows.create_session, owner, "beta") == (2005, "quota_exceeded")


def test_an_export_is_imported_under_a_new_id_when_its_own_is_taken(owner: SessionUser, bob: Person) -> None:
    say(owner, "hi", "ho")
    exported = session_files.export_session(owner, "beta", "s-1")
    (log,) = session_files.import_sessions(owner, "beta", exported)
    assert (log.session_id != "s-1", log.imported_from, log.state) == (True, "beta:s-1", "committed")
    assert texts_of(owner, "beta", log.session_id) == ["hi", "ho"]
    make_session(bob.user, "far", link="gateway")
    (log,) = session_files.import_sessions(SessionUser(bob.user.pk, "bob"), "far", exported)
    assert (log.session_id, log.owner_id) == ("s-1", bob.user.pk)
    assert code_of(session_files.import_sessions, agent(owner, "alpha"), "beta", exported) == (5004, "")


def test_an_import_is_all_or_nothing(owner: SessionUser, monkeypatch: Any) -> None:
    line = {"timestamp": 1, "role": "user", "content": "hi"}
    good = b"".join(json.dumps(line | {"sessionId": f"s-{n}"}).encode() + b"\n" for n in range(3))
    assert code_of(session_files.import_sessions, owner, "beta", good + b"{}\n") == (4004, "")
    assert code_of(session_files.import_sessions, owner, "beta", b"") == (4004, "")
    lower(monkeypatch, TEAM_SESSIONS=2)
    assert code_of(session_files.import_sessions, owner, "beta", good) == (2005, "quota_exceeded")
    monkeypatch.setattr(session_files, "MAX_ENTRIES", 0)
    assert code_of(session_files.import_sessions, owner, "beta", good) == (2005, "too_large")
    assert not SessionLog.objects.exists()
    assert not SessionEntry.objects.exists()


def test_sessions_without_new_entries_are_forgotten(owner: SessionUser) -> None:
    say(owner, "hi", session_id="old")
    say(owner, "hi", session_id="young")
    set_age("old", timedelta(days=91))
    assert session_recording.forget_old(90) == 4  # two sessions and their entries
    assert {one["id"] for one in session_rows.list_sessions(owner)["sessions"]} == {"young"}


def test_rest_exports_and_imports(owner: SessionUser, alice: Person, bob: Person) -> None:
    say(owner, "hi")
    own, other = api(alice.session), api(bob.session)
    path = "/api/v1/team/sessions"
    listed = own.get(path, {"agent": "beta"}).json()
    assert ([one["id"] for one in listed["items"]], listed["total"]) == (["s-1"], 1)
    exported = own.get(f"{path}/export", {"agent": "beta", "sessionId": "s-1"})
    assert exported.status_code == 200
    assert exported.headers["Content-Disposition"] == 'attachment; filename="beta-session.jsonl"'
    data = exported.content
    assert data == session_files.export_session(owner, "beta", "s-1")
    for wanted in ({"agent": "beta", "sessionId": "s-9"}, {"agent": "gamma", "sessionId": "s-1"}):
        assert own.get(f"{path}/export", wanted).status_code == 404
    assert other.get(f"{path}/export", {"agent": "beta", "sessionId": "s-1"}).status_code == 404
    assert other.get(path).json()["items"] == []

    def upload(data: bytes) -> Any:
        return own.post(f"{path}/import", {"agent": "alpha", "file": SimpleUploadedFile("session.jsonl", data)})

    made = upload(data.replace(b'"hi"', b'"ho"'))
    assert (made.status_code, made.json()["error"]) == (400, "session_corrupt")
    made = upload(data)
    assert made.status_code == 201, made.content
    assert made.json()["items"][0]["importedFrom"] == "beta:s-1"
    assert SessionLog.objects.filter(agent="alpha").count() == 2


def run(*args: str) -> str:
    out = io.StringIO()
    call_command("gateway_session", "--login", "alice", *args, stdout=out)
    return out.getvalue()


def test_the_command_line_creates_a_session(owner: SessionUser, subtests: pytest.Subtests) -> None:
    made = json.loads(run("create", "alpha"))
    assert (made["agent"], made["entries"], made["state"], made["id"] != "") == ("alpha", 0, "active", True)
    assert json.loads(run("create", "beta", "s-7"))["id"] == "s-7"
    assert {json.loads(line)["id"] for line in run("list").splitlines()} == {made["id"], "s-7"}
    for args, error in (
        (("beta", "s-7"), "2005 INVALID_CONTENT: the agent has a session of that id"),
        (("gamma",), "3001 AGENT_NOT_FOUND"),
        (("No Name",), "2005 INVALID_CONTENT: agent"),
        (("beta", "s\n"), "2005 INVALID_CONTENT: sessionId"),
    ):
        with subtests.test(args=args), pytest.raises(CommandError, match=error):
            run("create", *args)


def test_the_command_line_does_what_the_services_do(owner: SessionUser, tmp_path: Path) -> None:
    say(owner, "hi")
    assert [json.loads(line)["agent"] for line in run("list").splitlines()] == ["alpha", "beta"]
    assert json.loads(run("get", "beta", "s-1"))["content"] == "hi"
    assert json.loads(run("commit", "beta", "s-1"))["state"] == "committed"
    (tmp_path / "session.jsonl").write_text(run("export", "beta", "s-1"))
    assert json.loads(run("import", "alpha", str(tmp_path / "session.jsonl")))["importedFrom"] == "beta:s-1"
    assert json.loads(run("delete", "beta", "s-1")) == {"deleted": "s-1"}
    with pytest.raises(CommandError, match="4001 SESSION_NOT_FOUND"):
        run("get", "beta", "s-1")
    set_age("s-1", timedelta(days=8))
    assert len(json.loads(run("archive", "--older-than", "7d"))["archived"]) >= 1
    with pytest.raises(CommandError, match="2005 INVALID_CONTENT"):
        run("archive", "alpha", "--older-than", "soon")


def test_the_account_export_shows_what_was_said_and_erasing_takes_it(owner: SessionUser, alice: Person) -> None:
    say(owner, WORD)
    lines = [json.loads(line) for line in "".join(pieces(alice.user)).splitlines()]
    said = [one["row"]["content"] for one in lines if one.get("table") == "team_session_entry"]
    assert said == [WORD, WORD]
    person("staff", is_staff=True)
    close(alice.user.pk, by_operator=True)
    alice.user.refresh_from_db()
    assert erase(alice.user)
    assert not SessionLog.objects.exists()


def test_the_admin_shows_sessions_to_their_owner_without_what_was_said(
    owner: SessionUser, alice: Person, bob: Person
) -> None:
    say(owner, WORD)
    pk = SessionLog.objects.get(agent="beta").pk
    page = browser(alice.session).get(f"/admin/gateway/sessionlog/{pk}/change/")
    assert page.status_code == 200
    assert WORD not in page.content.decode()
    assert browser(bob.session).get(f"/admin/gateway/sessionlog/{pk}/change/").status_code == 302


def test_rotating_the_keys_seals_entries_anew(owner: SessionUser, settings: Any) -> None:
    settings.WEBHOOK_KEYS = ("the first key of all, long ago made",)
    say(owner, WORD)
    settings.WEBHOOK_KEYS = ("the second key, made much later on", *settings.WEBHOOK_KEYS)
    out = io.StringIO()
    call_command("rotate_webhook_keys", stdout=out)
    assert "2 entries of sessions," in out.getvalue()
    settings.WEBHOOK_KEYS = settings.WEBHOOK_KEYS[:1]
    assert texts_of(owner, "beta", "s-1") == [WORD]
    settings.WEBHOOK_KEYS = ("a third key, which sealed nothing yet",)
    assert code_of(session_rows.get_entries, owner, "beta", "s-1") == (4004, "unreadable")


def held(owner: SessionUser, process_id: str, *texts: str) -> list[PlacedEntry]:
    """Records of messages of alpha to beta that a process held."""
    place = make_place(owner.owner_id, owner.login, "alpha", "beta", "s-1")
    return hold_entries(place, process_id, {text: text for text in texts})


def test_what_a_killed_process_held_is_written_once(owner: SessionUser) -> None:
    of_dead = held(owner, "dead", "one", "two")
    Process.objects.create(id="living", host="h", pid=1)
    of_living = held(owner, "living", "three")
    own = held(owner, "own", "four")
    session_recording.write_records(of_dead[:1])  # then the process was killed
    assert session_recording.write_orphaned_records("own", is_alone=False) == 1
    assert session_recording.write_orphaned_records("own", is_alone=False) == 0
    # A process that was taken for dead continues: its entry is in the session, and is not written again.
    session_recording.write_records([*of_dead[1:], *of_living, *own])
    for name in ("alpha", "beta"):
        log = SessionLog.objects.get(agent=name)
        said = [entry.content for entry in session_rows.read_entries(log)]
        assert (said, log.entries) == (["one", "two", "three", "four"], 4)
    assert not HeldEntry.objects.exists()


def test_a_process_that_is_alone_writes_what_any_other_held(owner: SessionUser) -> None:
    Process.objects.create(id="before", host="h", pid=1)  # its heartbeat is recent
    held(owner, "before", "one")
    held(owner, "own", "two")
    assert session_recording.write_orphaned_records("own", is_alone=True) == 1
    assert [entry.content for entry in session_rows.read_entries(SessionLog.objects.get(agent="beta"))] == ["one"]
    assert [one.key for one in HeldEntry.objects.all()] == ["own-two"]


@pytest.mark.django_db(transaction=True)
def test_what_can_never_be_written_is_logged_once_and_holds_nothing_up(
    owner: SessionUser, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, other_version, refused, _ = held(owner, "dead", "a", "b", "c", "sound")
    HeldEntry.objects.filter(key=damaged.key).update(content="x")
    HeldEntry.objects.filter(key=other_version.key).update(about='{"place": "of another version"}')
    about = HeldEntry.objects.get(key=refused.key).about
    of_no_owner = about.replace(f'"owner_id":{owner.owner_id}', '"owner_id":987654')
    HeldEntry.objects.filter(key=refused.key).update(about=of_no_owner)
    assert session_recording.write_orphaned_records("own", is_alone=True) == 1
    events = ["gateway.held_entry_unreadable"] * 2 + ["gateway.session_entry_not_written"]
    assert [one.msg for one in caplog.records] == events
    assert session_recording.write_orphaned_records("own", is_alone=True) == 0
    assert len(caplog.records) == 3
    assert texts_of(owner, "beta", "s-1") == ["sound"]
    assert not HeldEntry.objects.exists()
