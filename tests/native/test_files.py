"""Files of sessions over REST: who may, what is refused, what is counted, what goes by itself."""

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents import jobs
from agents.models import Attachment, Blob, File, Process, Session
from agents.transcript import files
from hub.celery import app
from tests.carrying import carrying
from tests.native.rows import Person, api, make_session
from tests.native.session_files import CAP, TEXT, live, of, stored, upload

FIELDS = {
    *("id", "sessionId", "uploaderLogin", "filename", "mime", "size", "sha256", "scope", "expose", "uploadedAt"),
    *("expiresAt", "deletedAt"),
}
SHA = hashlib.sha256(TEXT).hexdigest()


def test_an_uploaded_file_is_shown_whole_and_comes_back_byte_for_byte(alice: Person, session: Session) -> None:
    data = bytes(range(256)) * 3
    answer = upload(alice, session, data, "raw.bin", "application/x-raw")
    assert answer.status_code == 201, answer.content
    shown = answer.json()
    assert set(shown) == FIELDS
    assert (shown["sessionId"], shown["uploaderLogin"]) == (str(session.public_id), "alice")
    assert (shown["filename"], shown["mime"], shown["size"]) == ("raw.bin", "application/x-raw", 768)
    assert shown["sha256"] == hashlib.sha256(data).hexdigest()
    assert (shown["scope"], shown["expose"], shown["deletedAt"]) == ("attachment", False, None)
    file = File.objects.get()
    assert file.expires_at - file.uploaded_at == timedelta(days=30)
    content = api(alice.session).get(f"/api/v1/files/{shown['id']}/content")
    assert content.content == data


def test_content_is_for_saving_and_never_for_showing(alice: Person, session: Session) -> None:
    shown = upload(alice, session, b"<script>alert(1)</script>", 'übel".html', "text/html").json()
    answer = api(alice.session).get(f"/api/v1/files/{shown['id']}/content", HTTP_ACCEPT="text/html")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == "attachment; filename*=utf-8''%C3%BCbel%22.html"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"


def test_the_list_is_newest_first_in_pages_and_has_the_deleted(alice: Person, session: Session) -> None:
    ids = [stored(alice, session, bytes([n])).pk for n in range(3)]
    api(alice.session).delete(f"/api/v1/files/{ids[1]}")
    body = api(alice.session).get(of(session)).json()
    assert [item["id"] for item in body["items"]] == ids[::-1]
    assert [item["deletedAt"] is None for item in body["items"]] == [True, False, True]
    assert body["items"][1]["sha256"] == hashlib.sha256(b"\x01").hexdigest()
    second = api(alice.session).get(f"{of(session)}?limit=1&offset=1").json()
    assert ([item["id"] for item in second["items"]], second["total"]) == ([ids[1]], 3)


def test_the_list_takes_as_many_queries_for_many_files_as_for_one(
    alice: Person, session: Session, django_assert_max_num_queries: Any
) -> None:
    for n in range(20):
        stored(alice, session, bytes([n]))
    with django_assert_max_num_queries(8):
        assert len(api(alice.session).get(of(session)).json()["items"]) == 20


def test_an_id_that_is_none_is_a_404(alice: Person) -> None:
    for path in ["0", str(2**63), "9" * 30, "-1", "x", "1%00"]:
        answer = api(alice.session).delete(f"/api/v1/files/{path}")
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path
        assert api(alice.session).get(f"/api/v1/files/{path}/content").status_code == 404, path


def test_ten_mebibytes_are_taken_and_one_byte_more_is_a_413(alice: Person, session: Session) -> None:
    answer = upload(alice, session, b"x" * CAP)
    assert (answer.status_code, answer.json()["size"]) == (201, CAP)
    answer = upload(alice, session, b"x" * (CAP + 1))
    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")
    assert File.objects.count() == Blob.objects.count() == 1


FORM = "multipart/form-data; boundary=b"


def one_part(disposition: bytes, data: bytes = b"x") -> bytes:
    return b"--b\r\nContent-Disposition: form-data; " + disposition + b"\r\n\r\n" + data + b"\r\n"


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{}", "application/json", 415),
        (b"", "multipart/form-data", 400),
        (b"x", FORM, 400),
        (b"--b\r\n\r\n--b--\r\n", FORM, 400),
        (one_part(b'name="file"') + b"--b--\r\n", FORM, 400),
        (one_part(b'name="file"; filename="a.txt"', b"") + b"--b--\r\n", FORM, 400),
        (one_part(b'name="file"; filename=".."') + b"--b--\r\n", FORM, 400),
        (one_part(b'name="file"; filename="\xff\xed\xa0"') + b"--b--\r\n", FORM, 400),
        (b"x", "multipart/form-data; boundary=\xff", 400),
        (b"x", f"{FORM}; charset=bz2_codec", 400),
        (b"--b\r\n" + b"X: y\r\n" * 20_000, FORM, 400),
        (one_part(b'name="f"; filename="x"') * 200, FORM, 400),
    ],
)
def test_a_body_without_a_file_is_refused(
    alice: Person, session: Session, body: bytes, content_type: str, status: int
) -> None:
    answer = api(alice.session).post(of(session), body, content_type=content_type)
    assert answer.status_code == status, answer.content
    assert set(answer.json()) == {"error", "message"}
    assert not File.objects.exists()


def test_bytes_are_kept_once_and_go_with_their_last_file(alice: Person, session: Session) -> None:
    one, two = (upload(alice, session, name=name).json()["id"] for name in ("a.txt", "b.txt"))
    assert Blob.objects.count() == 1
    client, first = api(alice.session), {"ok": True, "alreadyDeleted": False}
    kept = {"blobDeleted": False, "refsRemaining": 1, "freedBytes": 0}
    assert client.delete(f"/api/v1/files/{one}").json() == first | kept
    assert client.get(f"/api/v1/files/{one}/content").status_code == 404
    assert client.get(f"/api/v1/files/{two}/content").content == TEXT
    gone = {"blobDeleted": True, "refsRemaining": 0, "freedBytes": len(TEXT)}
    assert client.delete(f"/api/v1/files/{two}").json() == first | gone
    assert client.delete(f"/api/v1/files/{two}").json()["alreadyDeleted"] is True
    assert not Blob.objects.exists()


def test_files_past_their_time_go_and_the_rest_stay(alice: Person, session: Session) -> None:
    old = [stored(alice, session, b"old%d" % n) for n in range(25)]
    shared, kept = stored(alice, session, b"old0"), stored(alice, session)
    File.objects.filter(pk__in=[file.pk for file in old]).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert jobs.expire_files() == 25
    assert live(session) == [shared.pk, kept.pk]
    assert set(Blob.objects.values_list("pk", flat=True)) == {shared.sha256, kept.sha256}
    assert jobs.expire_files() == 0


def test_bytes_of_a_deleted_user_are_swept(alice: Person, bob: Person, session: Session) -> None:
    stored(alice, session)
    stored(bob, make_session(bob.user), b"theirs")
    bob.user.delete()
    jobs.expire_files()
    assert list(Blob.objects.values_list("pk", flat=True)) == [SHA]


def test_forgetting_the_files_of_a_session_tells_what_went(alice: Person, session: Session) -> None:
    other = make_session(alice.user, "other")
    elsewhere = stored(alice, other)
    stored(alice, session)
    stored(alice, session, b"mine alone")
    files.delete(stored(alice, session, b"deleted"))
    assert files.forget_files_of([session.pk]) == (3, files.Swept(blobs=1, freed_bytes=10))
    assert list(File.objects.values_list("pk", flat=True)) == [elsewhere.pk]
    assert b"".join(files.open_file(elsewhere) or ()) == TEXT


def test_celery_knows_every_job_that_beat_sends() -> None:
    app.loader.import_default_modules()
    sent = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert "agents.expire_files" in sent
    assert sent <= set(app.tasks)


# What operators see.


@pytest.fixture
def carried() -> Iterator[list[dict[str, Any]]]:
    """The frames that were handed over for the operators of any session, in order."""
    frames: list[dict[str, Any]] = []
    with carrying(lambda addressed: frames.extend(json.loads(bytes(live.frame)) for _, live in addressed)):
        yield frames


def test_operators_are_told_of_files_that_come_and_go_once_it_is_committed(
    alice: Person, session: Session, carried: list[dict[str, Any]], django_capture_on_commit_callbacks: Any
) -> None:
    process = Process.objects.create(id="watching", host="here", pid=1)
    Attachment.objects.create(session=session, user=alice.user, process=process)
    with django_capture_on_commit_callbacks(execute=True):
        shown = upload(alice, session).json()
        assert carried == []
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            api(alice.session).delete(f"/api/v1/files/{shown['id']}")
    uploaded, deleted = carried
    about = {"type": "file_event", "sessionId": str(session.public_id)}
    assert uploaded == {**about, "action": "uploaded", "file": shown}
    gone = deleted["file"]["deletedAt"]
    assert gone is not None
    assert deleted == {**about, "action": "deleted", "file": {**shown, "deletedAt": gone}}


def test_operators_are_told_of_files_whose_time_is_up(
    alice: Person, session: Session, carried: list[dict[str, Any]], django_capture_on_commit_callbacks: Any
) -> None:
    process = Process.objects.create(id="watching", host="here", pid=1)
    Attachment.objects.create(session=session, user=alice.user, process=process)
    stored(alice, session)
    File.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with django_capture_on_commit_callbacks(execute=True):
        jobs.expire_files()
    assert [frame["action"] for frame in carried] == ["deleted"]
