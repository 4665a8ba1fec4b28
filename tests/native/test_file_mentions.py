"""Files that a prompt names by `fileId=N`: the session gets copies of those that the sender may read."""

import pytest

from agents.models import Blob, File, Session
from agents.transcript import files, mentions
from tests.native.rows import Person, make_session
from tests.native.session_files import TEXT, live, stored
from tests.native.transcripts import lend


def test_mentions_are_found() -> None:
    for text, ids in [
        ("see fileId=7 and fileId=12, fileId=7", [7, 12]),
        ("fileId=007.", [7]),
        ("myfileId=7 fileId=7x fileId= fileid=7 fileId=-7", []),
        ("fileId=" + "9" * 5000, [0]),
        ("fileId=0", [0]),
        ("fileId=٣", []),
    ]:
        assert mentions.mentions(text) == ids, (text, ids)


def test_only_named_ids_are_rewritten() -> None:
    text = "fileId=1, fileId=11 fileId=2 fileId=1"
    assert mentions.rewrite(text, {1: 2, 2: 3}) == "fileId=2, fileId=11 fileId=3 fileId=2"


def test_a_readable_file_is_copied_into_the_session_and_its_own_stay(alice: Person, bob: Person) -> None:
    here, there = make_session(alice.user, "here"), make_session(bob.user, "there")
    lend(there, alice.user, "viewer")
    own, theirs = stored(alice, here, b"own"), stored(bob, there)
    ids = mentions.clone_mentioned_files(here.pk, [own.pk, theirs.pk], alice.user.pk)
    copy = File.objects.get(pk=ids[theirs.pk])
    assert ids == {own.pk: own.pk, theirs.pk: copy.pk}
    assert (copy.session, copy.uploader, copy.filename, copy.mime) == (here, alice.user, "day.txt", "text/plain")
    assert Blob.objects.count() == 2
    files.delete(theirs)
    assert b"".join(files.open_file(copy) or ()) == TEXT


@pytest.mark.parametrize("why", ["foreign", "deleted", "absent", "zero", "huge", "lender suspended"])
def test_an_unreadable_file_refuses_them_all(alice: Person, bob: Person, session: Session, why: str) -> None:
    there = make_session(bob.user, "there")
    theirs, fine = stored(bob, there), stored(alice, make_session(alice.user, "mine"))
    if why != "foreign":
        lend(there, alice.user, "approver")
    if why == "deleted":
        files.delete(theirs)
    if why == "lender suspended":
        bob.user.is_active = False
        bob.user.save()
    wanted = {"absent": 999_999, "zero": 0, "huge": 2**70}.get(why, theirs.pk)
    with pytest.raises(mentions.FilesUnreadable) as refused:
        mentions.clone_mentioned_files(session.pk, [fine.pk, wanted], alice.user.pk)
    assert refused.value.file_ids == {wanted}
    assert live(session) == []


def test_a_prompt_names_fifty_files_at_most(alice: Person, session: Session) -> None:
    with pytest.raises(mentions.TooManyFiles):
        mentions.clone_mentioned_files(session.pk, range(1, 52), alice.user.pk)
