"""Files to ask with over REST: uploads, who reads them, previews, limits, deletion with the conversation."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.models import Credential
from accounts.tokens import TokenLimits, mint
from agents.models import Blob, File, Turn
from agents.transcript import callers_files, files, mentions
from agents.transcript.callers_files import Destination, delete_files_of_thread, prepare_sent
from lab.pictures import PIXEL, png_of
from tests.native.rows import Person, api, browser, make_agent, make_session, person

PDF = b"%PDF-1.4\n1 0 obj\n"


def upload(who: Person | str, data: bytes = PIXEL, name: str = "a.png", mime: str = "image/png") -> Any:
    token = who.session if isinstance(who, Person) else who
    form = {"file": SimpleUploadedFile(name, data, mime)}
    return api(token).post("/api/v1/files", form, format="multipart")


def send(file_id: int, who: Person, agent: Any, chat_id: str = "chat-1", context_id: str = "c1") -> None:
    mentions.clone_mentioned_files(
        agent.session_id, [file_id], who.user.pk, agent_id=agent.pk, chat_id=chat_id, context_id=context_id
    )


def test_an_upload_belongs_to_its_uploader_alone_until_it_is_sent(alice: Person, bob: Person) -> None:
    answer = upload(alice)
    assert answer.status_code == 201, answer.content
    shown = answer.json()
    assert shown["url"].endswith(f"/api/v1/files/{shown['id']}/content")
    assert (shown["mime"], shown["hasPreview"], shown["chatId"], shown["agent"]) == ("image/png", True, None, None)
    content = f"/api/v1/files/{shown['id']}/content"
    assert api(alice.session).get(content).content == PIXEL
    assert api(bob.session).get(content).status_code == 404
    agent = make_agent(bob.user)
    send(shown["id"], alice, agent)
    assert api(bob.session).get(content).content == PIXEL
    assert api(alice.session).get(content).content == PIXEL
    [listed] = api(alice.session).get("/api/v1/files").json()["items"]
    assert (listed["chatId"], listed["agent"]) == ("chat-1", agent.handle)
    assert api(bob.session).get("/api/v1/files").json()["items"] == []


def test_an_unsent_file_is_deleted_after_a_day_and_a_sent_one_is_kept(alice: Person, bob: Person) -> None:
    first, second = (upload(alice, PDF + name, "a.pdf", "application/pdf").json() for name in (b"1", b"2"))
    send(second["id"], alice, make_agent(bob.user))
    sent = File.objects.get(pk=second["id"])
    assert sent.expires_at - timezone.now() > timedelta(days=29)
    File.objects.filter(session=None).update(expires_at=timezone.now())
    assert files.expire() == 1
    assert File.objects.get(pk=first["id"]).deleted_at is not None
    assert Blob.objects.count() == 1


def test_the_same_file_again_is_the_same_row(alice: Person) -> None:
    assert upload(alice).json()["id"] == upload(alice).json()["id"]
    assert upload(alice, name="b.png").json()["id"] != upload(alice).json()["id"]
    assert Blob.objects.count() == 1


def test_a_file_that_lies_or_would_unpack_to_gigabytes_is_refused(alice: Person) -> None:
    lies = upload(alice, b"<script>alert(1)</script>")
    assert (lies.status_code, lies.json()["error"]) == (415, "file_refused")
    assert lies.json()["message"] == "a.png: declared as image/png, but its content is text/html"
    bomb = upload(alice, png_of(60_000, 60_000, bytes(1000)))
    assert (bomb.status_code, "60000 x 60000 pixels" in bomb.json()["message"]) == (415, True)
    assert not Blob.objects.exists()


def test_a_scanner_refuses_uploads(alice: Person, settings: Any) -> None:
    settings.FILE_SCAN_COMMAND = "false"
    answer = upload(alice)
    assert (answer.status_code, answer.json()["message"]) == (415, "a.png: refused by the scanner of this hub")
    session = make_session(alice.user)
    form = {"file": SimpleUploadedFile("a.txt", b"a", "text/plain")}
    of_session = api(alice.session).post(f"/api/v1/sessions/{session.public_id}/files", form, format="multipart")
    assert of_session.status_code == 415
    settings.FILE_SCAN_COMMAND = "/absent"
    assert upload(alice).status_code == 503
    assert not File.objects.exists()


def test_one_file_too_many_is_refused(alice: Person, settings: Any) -> None:
    settings.FILES_PER_OWNER = 2
    for number in range(2):
        assert upload(alice, b"%d" % number, f"{number}.txt", "text/plain").status_code == 201
    full = upload(alice, b"3", "3.txt", "text/plain")
    assert (full.status_code, full.json()["error"]) == (429, "quota_exceeded")
    assert full.json()["message"] == "you have 2 files, and 2 are the most: delete some first"
    assert upload(alice, b"1", "1.txt", "text/plain").status_code == 201  # it is there already
    first = File.objects.order_by("pk")[0]
    assert api(alice.session).delete(f"/api/v1/files/{first.pk}").status_code == 200
    assert upload(alice, b"3", "3.txt", "text/plain").status_code == 201


def test_a_preview_runs_nothing(alice: Person, bob: Person) -> None:
    picture, page = upload(alice).json(), upload(alice, b"<script>alert(1)</script>", "a.html", "text/html").json()
    paper = upload(alice, PDF, "übel.pdf", "application/pdf").json()
    shown = api(alice.session).get(f"/api/v1/files/{picture['id']}/preview")
    assert (shown["Content-Type"], shown.content) == ("image/png", PIXEL)
    assert shown["Content-Security-Policy"] == "sandbox; default-src 'none'; frame-ancestors 'self'"
    assert (shown["X-Content-Type-Options"], shown["X-Frame-Options"]) == ("nosniff", "SAMEORIGIN")
    assert shown["Content-Disposition"].startswith("inline")
    framed = api(alice.session).get(f"/api/v1/files/{paper['id']}/preview")
    assert framed["Content-Type"] == "application/pdf"
    assert framed["Content-Security-Policy"] == shown["Content-Security-Policy"]
    assert api(alice.session).get(f"/api/v1/files/{page['id']}/preview").status_code == 404
    assert api(bob.session).get(f"/api/v1/files/{picture['id']}/preview").status_code == 404
    content = api(alice.session).get(f"/api/v1/files/{page['id']}/content")
    assert content["Content-Type"] == "application/octet-stream"


def test_a_file_of_a_sessions_operator_has_no_preview_because_it_was_not_checked(alice: Person) -> None:
    session = make_session(alice.user)
    file = files.store(session, alice.user, files.Upload(filename="a.png", mime="image/png", data=b"no png"))
    assert api(alice.session).get(f"/api/v1/files/{file.pk}/preview").status_code == 404


def test_a_token_for_asking_one_agent_uploads_and_a_reading_one_does_not(alice: Person) -> None:
    handle = make_agent(alice.user).handle
    asking = mint(alice.user, Credential.Kind.APP, "asks", limits=TokenLimits(("ask",), handle)).token
    reading = mint(alice.user, Credential.Kind.APP, "reads", limits=TokenLimits(("read",))).token
    assert upload(asking).status_code == 201
    refused = upload(reading)
    assert (refused.status_code, refused.json()["error"]) == (403, "insufficient_scope")
    for token in (alice.channel, "nonsense"):
        assert upload(token).status_code == 401


def test_the_agent_reads_a_callers_file_only_while_it_answers_that_caller(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user)
    channel = Credential.objects.get(user=bob.user, kind=Credential.Kind.CHANNEL)
    agent.session.credential_id = channel.pk
    agent.session.save()
    file = upload(alice).json()
    send(file["id"], alice, agent)
    path = f"/api/channel/files/{file['id']}?sessionId={agent.session.public_id}"
    assert api(bob.channel).get(path).status_code == 404
    now = timezone.now()
    begun = {"chat_id": "chat-1", "question": "q", "asked_at": now, "claim_until": now}
    turn = Turn.objects.create(agent=agent, session=agent.session, caller=alice.user, **begun)
    assert api(bob.channel).get(path).content == PIXEL
    Turn.objects.filter(pk=turn.pk).update(caller=bob.user)
    assert api(bob.channel).get(path).content == PIXEL  # the owner reads all files of the session
    Turn.objects.filter(pk=turn.pk).update(outcome="completed", settled_at=now, released_at=now)
    assert api(bob.channel).get(path).status_code == 404


def test_files_go_with_their_conversation_and_leave_others_theirs(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user)
    file_id = upload(alice).json()["id"]
    send(file_id, alice, agent, context_id="c1")
    again = prepare_sent(alice.user.pk, [file_id], Destination(agent.session_id, "c2"))[file_id]
    assert (again.pk != file_id, again.blob_id) == (True, File.objects.get(pk=file_id).blob_id)
    same = prepare_sent(alice.user.pk, [file_id], Destination(agent.session_id, "c1"))[file_id]
    assert same.pk == file_id
    send(again.pk, alice, agent, "chat-2", "c2")
    assert delete_files_of_thread(alice.user.pk, agent.pk, "c1") == 1
    assert [one.pk for one in File.objects.live()] == [again.pk]
    assert Blob.objects.count() == 1
    assert delete_files_of_thread(bob.user.pk, agent.pk, "c2") == 0
    assert delete_files_of_thread(alice.user.pk, agent.pk, "c2") == 1
    assert not Blob.objects.exists()


def test_the_file_of_another_user_cannot_be_sent(alice: Person, bob: Person) -> None:
    file_id = upload(alice).json()["id"]
    agent = make_agent(bob.user)
    assert prepare_sent(bob.user.pk, [file_id], Destination(agent.session_id, "c")) == {}
    with pytest.raises(mentions.FilesUnreadable):
        send(file_id, bob, agent)


def test_only_addresses_of_this_hub_name_its_files() -> None:
    assert callers_files.find_id(callers_files.address_of(12)) == 12
    for url in (
        "https://elsewhere.example/api/v1/files/12/content",
        callers_files.address_of(12) + "?a",
        "",
        "12",
    ):
        assert callers_files.find_id(url) is None


def test_the_page_lists_and_deletes_own_files_alone(alice: Person, bob: Person) -> None:
    picture, agent = upload(alice).json(), make_agent(bob.user)
    send(picture["id"], alice, agent)
    upload(alice, b"<b>", "<b>.txt", "text/plain")
    theirs = upload(bob, PDF, "theirs.pdf", "application/pdf").json()
    page = browser(alice.session).get("/files").content.decode()
    assert f"@{agent.handle}" in page
    assert f"/api/v1/files/{picture['id']}/preview" in page
    assert "&lt;b&gt;.txt" in page
    assert "theirs.pdf" not in page
    assert browser(alice.session).post(f"/files/{theirs['id']}/delete").status_code == 404
    deleted = browser(alice.session).post(f"/files/{picture['id']}/delete", follow=True)
    assert "Deleted a.png." in deleted.content.decode()
    assert File.objects.get(pk=picture["id"]).deleted_at is not None
    assert "No files" in browser(person("zoe").session).get("/files").content.decode()
    assert browser(None).get("/files").status_code == 302


def test_the_list_of_five_thousand_files_is_a_light_page(alice: Person) -> None:
    upload(alice)
    file = File.objects.get()
    values = {
        "uploader": alice.user,
        "blob_id": file.blob_id,
        "sha256": file.sha256,
        "mime": "image/png",
        "size": 1,
    }
    rows = [File(filename=f"{number}.png", expires_at=file.expires_at, **values) for number in range(4_999)]
    File.objects.bulk_create(rows)
    page = browser(alice.session).get("/files")
    assert len(page.content) < 60_000
    assert "5000 files of 5000" in page.content.decode()
    refused = upload(alice, b"one more", "more.txt", "text/plain")
    assert (refused.status_code, refused.json()["error"]) == (429, "quota_exceeded")
