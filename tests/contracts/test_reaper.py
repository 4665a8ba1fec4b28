"""Turns that dead processes leave open end once, by any process that sweeps."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Credential, User
from accounts.tokens import mint
from agents import jobs
from agents.core import presence
from agents.core.types import TurnEnding
from agents.models import Connection, Process, Session, Turn
from agents.models.choices import Outcome, TurnFailure
from agents.transcript.session_deletion import delete_sessions
from tests.contracts.rows import HOME, admitted, ask, decide, end, live_process, published, user

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]

LONG_AGO = timedelta(days=500)


def test_open_turns_of_a_dead_process_fail_and_let_go() -> None:
    agent = published()
    live_process("other")
    decide(ask(agent), home="other")
    Process.objects.filter(id="other").update(beat_at=timezone.now() - timedelta(seconds=21))
    assert jobs.reap()["orphans"] == 1
    row = Turn.objects.get()
    assert (row.outcome, row.reason) == ("failed", "process_died")
    assert row.released_at is not None
    admitted(ask(agent, "bob"))


def test_open_turns_of_a_process_that_retired_without_them_fail_too() -> None:
    decide(ask(published()), home="gone")
    assert jobs.reap()["orphans"] == 1


def test_turns_of_the_living_are_left_alone() -> None:
    turn = admitted(ask(published()))
    assert jobs.reap() == {"orphans": 0, "overdue": 0, "released": 0, "dead": 0}
    assert Turn.objects.get(chat_id=turn.ask.chat_id).outcome is None


def test_a_turn_past_its_lease_fails_although_its_process_lives() -> None:
    admitted(ask(published()))
    Turn.objects.update(claim_until=timezone.now() - timedelta(seconds=1))
    assert jobs.reap()["overdue"] == 1
    assert Turn.objects.get().reason == "timeout"


def test_a_lingering_claim_that_ran_out_is_closed_in_the_row_as_well() -> None:
    end(
        admitted(ask(published())),
        TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.TIMEOUT, keeps_claim=True),
    )
    Turn.objects.update(claim_until=timezone.now() - timedelta(seconds=1))
    assert jobs.reap()["released"] == 1
    assert Turn.objects.get().released_at is not None


def test_the_dead_are_forgotten_with_their_connections() -> None:
    published()
    Process.objects.filter(id=HOME).update(beat_at=timezone.now() - timedelta(seconds=21))
    jobs.reap()
    assert not Process.objects.exists()
    assert not Connection.objects.exists()


def test_a_beat_tells_what_was_lost() -> None:
    mine, other, third = published(), published(), published()
    kept, gone, deleted = [Connection.objects.get(session_id=one.ref.session_id) for one in (mine, other, third)]
    held = {one.pk: one.session_id for one in (kept, gone, deleted)}
    Connection.objects.filter(pk=gone.pk).delete()
    delete_sessions([deleted.session_id])
    beat = presence.record_heartbeat(HOME, mine=held, others=[gone.pk])
    assert (beat.missing, beat.lost, beat.deleted) == (
        held.keys() - {kept.pk},
        {gone.pk},
        {deleted.session_id},
    )


def test_a_beat_leaves_a_session_to_the_connection_that_took_it_over() -> None:
    held = Connection.objects.get(session_id=published().ref.session_id)
    newer = Connection(session=held.session, process=held.process, credential=held.credential)
    held.delete()
    newer.save()
    beat = presence.record_heartbeat(HOME, mine={41: newer.session_id, newer.pk: newer.session_id}, others=[])
    assert beat.missing == set()  # the word of it is on its way
    Connection.objects.update(connected_at=timezone.now() - timedelta(seconds=11))
    beat = presence.record_heartbeat(HOME, mine={41: newer.session_id, newer.pk: newer.session_id}, others=[])
    assert (beat.missing, beat.superseded, beat.deleted) == ({41}, {newer.session_id}, set())


def test_a_revoked_token_is_found_by_the_process_that_holds_its_socket() -> None:
    mine, other = published(), published()
    held = Connection.objects.get(session_id=mine.ref.session_id)
    Session.objects.filter(pk=held.session_id).update(credential_id=held.credential_id)
    assert presence.find_revoked(HOME) == []
    Credential.objects.filter(pk=held.credential_id).revoke()
    assert presence.find_revoked(HOME) == [held.pk]
    assert presence.find_revoked("another process") == []
    assert Session.objects.get(pk=mine.ref.session_id).archived_at is not None
    assert Session.objects.get(pk=other.ref.session_id).archived_at is None


def test_an_expired_token_and_a_suspended_owner_are_found_too() -> None:
    mine, other = published(), published()
    held = [Connection.objects.get(session_id=one.ref.session_id) for one in (mine, other)]
    Credential.objects.filter(pk=held[0].credential_id).update(expires_at=timezone.now() - LONG_AGO)
    assert presence.find_revoked(HOME) == [held[0].pk]
    User.objects.filter(pk=held[1].session.owner_id).update(is_active=False)
    assert set(presence.find_revoked(HOME)) == {one.pk for one in held}


def test_retention_deletes_old_turns_and_long_dead_credentials_and_keeps_the_rest() -> None:
    agent = published()
    end(admitted(ask(agent)))
    Turn.objects.update(asked_at=timezone.now() - LONG_AGO)
    end(admitted(ask(agent)))
    dead = mint(user("alice"), Credential.Kind.APP, "old").credential
    Credential.objects.filter(pk=dead.pk).update(revoked_at=timezone.now() - LONG_AGO)
    alive = mint(user("alice"), Credential.Kind.APP, "new").credential
    assert jobs.retain(400) == 1
    assert Turn.objects.count() == 1
    assert not Credential.objects.filter(pk=dead.pk).exists()
    assert Credential.objects.filter(pk=alive.pk).exists()


def test_a_claim_does_not_linger_on_a_connection_that_is_gone() -> None:
    agent = published()
    end(admitted(ask(agent)), TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.TIMEOUT, keeps_claim=True))
    connection = Connection.objects.get(session_id=agent.ref.session_id)
    assert jobs.reap()["released"] == 0
    Connection.objects.filter(pk=connection.pk).delete()
    assert jobs.reap()["released"] == 1


def test_a_socket_that_leaves_takes_its_lingering_claims_along() -> None:
    agent = published()
    end(admitted(ask(agent)), TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.TIMEOUT, keeps_claim=True))
    presence.remove_connection(Connection.objects.get(session_id=agent.ref.session_id).pk)
    assert Turn.objects.get().released_at is not None
