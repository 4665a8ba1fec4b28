"""Bytes are kept as long as a file names them, with concurrent uploads and deletions."""

import pytest
from django.db import transaction

from agents.models import Blob, File, Session
from agents.transcript import files, mentions
from tests.contracts.rows import user
from tests.racing import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.ledger, pytest.mark.slow]

ROUNDS = 15
DATA = b"the same bytes" * 1000


def session() -> Session:
    return Session.objects.create(owner=user("owner"), routing_name="desk")


def stored(into: Session, data: bytes = DATA) -> File:
    return files.store(into, into.owner, files.Upload(filename="same.txt", mime="text/plain", data=data))


def check_every_live_file_opens() -> None:
    for file in File.objects.live():
        assert b"".join(files.open_file(file) or ()) == DATA


def test_bytes_uploaded_while_their_last_file_goes_are_kept() -> None:
    desk = session()
    for _ in range(ROUNDS):
        last = stored(desk)
        new, deleted = at_once(lambda: stored(desk), lambda last=last: files.delete(last))
        assert b"".join(files.open_file(new) or ()) == DATA
        assert deleted.refs_remaining == (0 if deleted.blob_deleted else 1)
        assert files.delete(new).blob_deleted
        assert not Blob.objects.exists()


def test_many_uploads_of_new_bytes_make_one_blob() -> None:
    desk = session()
    for _ in range(ROUNDS):
        made = at_once(*[lambda: stored(desk)] * 4)
        assert Blob.objects.count() == 1
        check_every_live_file_opens()
        freed = at_once(*[lambda file=file: files.delete(file) for file in made])
        assert sorted(one.freed_bytes for one in freed) == [0, 0, 0, len(DATA)]
        assert sorted(one.refs_remaining for one in freed) == [0, 1, 2, 3]
        assert not Blob.objects.exists()


def test_of_two_who_delete_a_file_one_did_it() -> None:
    desk = session()
    for _ in range(ROUNDS):
        file = stored(desk)
        answers = at_once(*[lambda file=file: files.delete(File.objects.get(pk=file.pk))] * 2)
        assert sorted(one.already_deleted for one in answers) == [False, True]
        assert sum(one.freed_bytes for one in answers) == len(DATA)


def test_a_file_is_copied_or_gone_when_it_is_deleted_meanwhile() -> None:
    desk, other = session(), session()

    def copy(file: File) -> bool:
        try:
            with transaction.atomic():
                mentions.clone_mentioned_files(other.pk, [file.pk], other.owner_id)
        except mentions.FilesUnreadable:
            return False
        return True

    for _ in range(ROUNDS):
        file = stored(desk)
        copied, _ = at_once(lambda file=file: copy(file), lambda file=file: files.delete(file))
        assert Blob.objects.exists() == copied
        check_every_live_file_opens()
        files.forget_files_of([other.pk])


def test_sweeping_and_forgetting_leave_what_is_uploaded_meanwhile() -> None:
    desk, gone = session(), session()
    for _ in range(ROUNDS):
        stored(gone)
        at_once(lambda: stored(desk), lambda: files.forget_files_of([gone.pk]), files.expire)
        check_every_live_file_opens()
        assert Blob.objects.count() == 1
        files.delete(File.objects.live().get())


def test_files_that_swap_sessions_at_one_moment_do_not_lock_each_other_out() -> None:
    one, other = session(), session()
    pairs = [b"first" * 100, b"second" * 100]
    ids = [stored(one, data).pk for data in pairs]

    def copy(wanted: list[int]) -> dict[int, int]:
        with transaction.atomic():
            return mentions.clone_mentioned_files(other.pk, wanted, other.owner_id)

    for _ in range(ROUNDS):
        at_once(lambda: copy(ids), lambda: copy(ids[::-1]), lambda: copy(ids))
    assert File.objects.live().filter(session=other).count() == ROUNDS * 6
