"""Files that agents send and fetch over REST, by their channel token."""

import uuid
from typing import Any
from urllib.parse import quote

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from agents.models import File, Session
from agents.transcript import files
from tests.native.rows import Person, api, make_session
from tests.native.session_files import CAP, TEXT
from tests.native.transcripts import ROLES, lend


def register(session: Session, owner: Person) -> None:
    """As if the owner's channel token had brought this session."""
    session.credential = owner.user.credentials.get(prefix=owner.channel[:14])
    session.save()


def hand_out(token: str | None, session_id: object, data: bytes = TEXT) -> Any:
    form = {"sessionId": str(session_id), "file": SimpleUploadedFile("out.md", data, "text/markdown")}
    return api(token).post("/api/channel/files", form, format="multipart")


@pytest.mark.parametrize(
    ("target", "status"),
    [("own", 201), ("owner's other", 201), ("prompter", 201), ("viewer", 403), ("foreign", 404), ("absent", 404)],
)
def test_an_agent_hands_out_files_where_its_owner_may_prompt(
    alice: Person, bob: Person, session: Session, target: str, status: int
) -> None:
    register(session, alice)
    theirs = make_session(bob.user)
    if target in ROLES:
        lend(theirs, alice.user, target)
    ids = {
        "own": session.public_id,
        "owner's other": make_session(alice.user, "b").public_id,
        "absent": uuid.uuid4(),
    }
    answer = hand_out(alice.channel, ids.get(target, theirs.public_id))
    assert answer.status_code == status, answer.content
    if status == 201:
        assert set(answer.json()) == {"id", "filename", "mime", "size", "sha256", "sessionId"}
        assert File.objects.get().scope == "reply"
    elif status == 403:
        message = "this takes the role prompter of the session"
        assert answer.json() == {"error": "forbidden", "message": message}
    else:
        assert answer.json() == {"error": "not_found", "message": "no such session"}


@pytest.mark.parametrize("data", [b"", b"x" * (CAP + 1)])
def test_an_agents_file_has_the_same_bounds(alice: Person, session: Session, data: bytes) -> None:
    answer = hand_out(alice.channel, session.public_id, data)
    assert answer.status_code == (413 if data else 400)
    assert not File.objects.exists()


def test_a_session_id_that_is_none_is_refused(alice: Person) -> None:
    for session_id in ["", "x", "a\0b", "' OR 1"]:
        assert hand_out(alice.channel, session_id).status_code == 400, session_id
        assert api(alice.channel).get("/api/channel/files/1", {"sessionId": session_id}).status_code == 400, (
            session_id
        )


@pytest.mark.parametrize("why", ["fine", "another session", "another token", "deleted", "foreign"])
def test_an_agent_fetches_live_files_of_its_own_session(
    alice: Person, bob: Person, session: Session, why: str
) -> None:
    register(session, alice)
    other = make_session(alice.user, "other")
    file = files.store(session, alice.user, files.Upload(filename="Größe.txt", mime="text/plain", data=TEXT))
    if why == "deleted":
        files.delete(file)
    if why == "another token":
        register(session, bob)
    where = other if why == "another session" else session
    token = bob.channel if why == "foreign" else alice.channel
    answer = api(token).get(f"/api/channel/files/{file.pk}?sessionId={where.public_id}", HTTP_ACCEPT="text/plain")
    if why != "fine":
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
        return
    assert (answer.status_code, answer.content) == (200, TEXT)
    assert answer["x-clawborrator-file-name"] == "Größe.txt"
    assert answer["x-clawborrator-file-mime"] == "text/plain"
    assert answer["x-clawborrator-file-size"] == str(len(TEXT))


def test_a_file_name_reaches_an_agent_as_far_as_latin_1_holds_it(alice: Person, session: Session) -> None:
    register(session, alice)
    for name, sent in [
        ("plain 100%.txt", "plain 100%.txt"),
        ("résumé.txt", "résumé.txt"),
        ("re\u0301sume\u0301.txt", "résumé.txt"),
        ("Übersicht – 日.txt", "Übersicht %E2%80%93 %E6%97%A5.txt"),
    ]:
        file = files.store(session, alice.user, files.Upload(filename=name, mime="text/plain", data=TEXT))
        answer = api(alice.channel).get(f"/api/channel/files/{file.pk}?sessionId={session.public_id}")
        assert answer["x-clawborrator-file-name"] == sent, (name, sent)
        assert f"filename*=utf-8''{quote(name)}" in answer["Content-Disposition"] or name.isascii(), (name, sent)
