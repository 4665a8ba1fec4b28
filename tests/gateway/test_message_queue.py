"""Stored messages as rows: limits of senders, the order of delivery, and the death of a delivering process."""

import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.core.management import call_command
from django.db import connection

from accounts.models import Credential, User
from accounts.tokens import mint
from agents.core.ask_starter import AskingUser
from agents.links.channel.driving import ActingFor
from agents.models import Connection, Session, Share, Turn
from agents.models.choices import Outcome, Surface
from gateway import jobs
from gateway.models import Letter, TeamAgent, TeamPolicy
from gateway.service import inbox, queue_claims, queue_ends
from gateway.service.messages import RoutedMessage, make_stored
from gateway.service.queue_rows import read_message, store_message
from gateway.service.seat import GATEWAY_LINK
from gateway.wire.errors import FrameRefused
from gateway.wire.frames import Envelope, make_frame
from kit.clock import db_now
from kit.ids import time_ordered
from tests.contracts.rows import HOME, live_process, user
from tests.native.rows import api

pytestmark = pytest.mark.django_db


def seat(owner: User, name: str, *, online: bool = False) -> Session:
    session = Session.objects.create(owner=owner, routing_name=name, link=GATEWAY_LINK)
    if online:
        token = mint(owner, Credential.Kind.CHANNEL, "test").credential
        Connection.objects.create(session=session, process=live_process(), credential=token)
    return session


def draft(
    recipient: Session,
    number: object = 1,
    *,
    sender: Session | None = None,
    by: User | None = None,
    tells: str = "",
    chain: tuple[int, ...] = (),
    passed_by_stranger: bool = False,
    **metadata: Any,
) -> RoutedMessage:
    """A message to a seat, of another seat or of a user."""
    caller = by or recipient.owner
    envelope = Envelope(
        type="message",
        content={"role": "user", "content": f"note {number}"},
        metadata=metadata,
        id=f"m-{number}",
        agent=recipient.routing_name,
        extra={},
    )
    name = sender.routing_name if sender is not None else caller.login
    behalf = ActingFor(
        AskingUser(user_id=caller.pk, login=caller.login, chain=chain, passed_by_stranger=passed_by_stranger),
        sender.pk if sender is not None else 0,
    )
    made = make_stored(recipient.pk, envelope, behalf, name, key="c-1")
    return replace(made, tells=tells, wait_s=60.0, wants_response=envelope.wants_response)


def store(wanted: RoutedMessage) -> Letter:
    stored = store_message(wanted, is_wanted=True)
    assert stored is not None
    return Letter.objects.get(pk=stored.pk)


def claimed(recipient: Session, higher: int = 0) -> Letter:
    claim = queue_claims.claim_next(recipient.pk, HOME, higher)
    assert claim.stored is not None
    return claim.stored


@pytest.fixture
def beta() -> Session:
    """A seat that is connected."""
    return seat(user("captain"), "beta", online=True)


def test_only_a_ttl_or_the_teams_policy_lets_a_message_wait(beta: Session) -> None:
    assert store_message(draft(beta, 1)) is None
    assert store_message(draft(beta, 2, ttl=5)) is not None
    TeamPolicy.objects.create(owner=beta.owner, queues_messages=True)
    kept = store_message(draft(beta, 3))
    assert kept is not None
    assert kept.expires_at is None


def test_one_lower_message_goes_first_after_sixteen_higher_ones(beta: Session) -> None:
    low = store(draft(beta, "low", priority="low"))
    for number in range(20):
        store(draft(beta, number, priority="high"))
    order: list[str] = []
    higher = 0
    while (claim := queue_claims.claim_next(beta.pk, HOME, higher)).stored is not None:
        order.append(claim.stored.message_id)
        higher = higher + 1 if claim.has_lower else 0
        queue_claims.mark_delivered(claim.stored)
    assert order.index(low.message_id) == queue_claims.HIGHER_IN_A_ROW
    assert [one for one in order if one != low.message_id] == [f"m-{number}" for number in range(20)]


def test_one_process_at_a_time_delivers_to_a_recipient(beta: Session) -> None:
    live_process("other")
    first, second = store(draft(beta, 1)), store(draft(beta, 2))
    stored = claimed(beta)
    assert stored.pk == first.pk
    assert queue_claims.claim_next(beta.pk, "other", 0) == queue_claims.Claim(is_blocked=True)
    queue_claims.mark_delivered(stored)
    following = queue_claims.claim_next(beta.pk, "other", 0).stored
    assert following is not None
    assert following.pk == second.pk
    # Who lost its claim changes nothing any more.
    queue_claims.release(stored)
    assert Letter.objects.get(pk=stored.pk).state == Letter.State.DELIVERED


def test_a_stored_message_that_ends_while_it_is_claimed_is_not_sent(beta: Session) -> None:
    stored, following = store(draft(beta, 1)), store(draft(beta, 2))
    is_ended = False

    def end_first(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Ends the stored message just before it is claimed, as another process may."""
        nonlocal is_ended
        if sql.startswith('UPDATE "gateway_letter"') and not is_ended:
            is_ended = True
            assert queue_ends.expire(stored)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(end_first):
        assert queue_claims.claim_next(beta.pk, HOME, 0) == queue_claims.Claim(is_blocked=True)
    assert Letter.objects.get(pk=stored.pk).state == Letter.State.DEAD
    assert claimed(beta).pk == following.pk


def test_a_stored_message_of_a_dead_process_is_sent_again_unless_its_turn_was_delivered(beta: Session) -> None:
    store(draft(beta, 1))
    store(draft(beta, 2))
    lost = claimed(beta)
    Letter.objects.filter(pk=lost.pk).update(claimed_by="dead-process")
    again = claimed(beta)
    assert (again.pk, again.attempts) == (lost.pk, 1)
    Letter.objects.filter(pk=lost.pk).update(claimed_by="dead-process")
    Turn.objects.create(
        chat_id=again.chat_id,
        session=beta,
        caller=beta.owner,
        surface=Surface.GATEWAY,
        asked_at=db_now(),
        outcome=Outcome.COMPLETED,
        settled_at=db_now(),
        released_at=db_now(),
    )
    following = claimed(beta)
    assert following.message_id == "m-2"
    assert Letter.objects.get(pk=lost.pk).state == Letter.State.DELIVERED


def test_a_stored_message_that_is_never_known_to_be_delivered_dies(beta: Session) -> None:
    store(draft(beta, 1))
    for _ in range(queue_ends.MAX_ATTEMPTS):
        queue_claims.release(claimed(beta), is_uncertain=True)
    dead = Letter.objects.get()
    assert (dead.state, dead.reason) == (Letter.State.DEAD, queue_ends.UNDELIVERABLE)


def test_a_message_that_may_have_been_sent_never_counts_as_unsent_when_it_waits_again(
    beta: Session,
) -> None:
    unsent = store(draft(beta, 1))
    sent = store(draft(beta, 2))
    for _ in range(2):
        queue_claims.release(claimed(beta))
        Letter.objects.filter(pk=unsent.pk).update(state=Letter.State.DEAD)
        queue_claims.release(claimed(beta), is_uncertain=True)
        for one in (unsent, sent):
            Letter.objects.filter(pk=one.pk).update(state=Letter.State.DEAD)
            assert inbox.retry_message(one)
        inbox.clear_inbox(beta.pk)
        assert [queue_ends.has_died_unsent(one.pk) for one in (unsent, sent)] == [True, False]
        for one in (unsent, sent):
            assert inbox.retry_message(one)


def test_one_sender_fills_a_quarter_of_an_inbox_and_all_of_them_no_more_than_all(
    beta: Session, settings: Any
) -> None:
    settings.LETTERS_PER_OWNER = 8
    senders = [seat(beta.owner, f"s-{number}") for number in range(5)]
    for number, sender in enumerate(senders[:4]):
        for each in range(2):
            store(draft(beta, f"{number}-{each}", sender=sender))
        with pytest.raises(FrameRefused, match="of one sender") as refused:
            store(draft(beta, f"{number}-3", sender=sender))
        assert (refused.value.code, refused.value.reason) == (3003, "inbox_full")
    with pytest.raises(FrameRefused, match="full"):
        store(draft(beta, "last", sender=senders[4]))
    # What was delivered makes room.
    queue_claims.mark_delivered(claimed(beta))
    store(draft(beta, "last", sender=senders[4]))
    assert Letter.objects.count() == 8
    settings.LETTERS_PER_OWNER, settings.LETTERS_MB_PER_OWNER = 0, 1
    with pytest.raises(FrameRefused, match="of one sender"):
        store(draft(beta, "x" * 300_000, sender=senders[4]))


def test_all_agents_of_another_owner_fill_a_quarter_of_an_inbox_together(beta: Session, settings: Any) -> None:
    settings.LETTERS_PER_OWNER = 8
    guest = user("guest")
    senders = [seat(guest, f"g-{number}") for number in range(3)]
    for sender in senders[:2]:
        store(draft(beta, sender.routing_name, sender=sender, by=guest))
    with pytest.raises(FrameRefused, match="of one sender"):
        store(draft(beta, "third", sender=senders[2], by=guest))


def test_a_list_of_peers_that_changed_ends_the_stored_message(beta: Session) -> None:
    alpha, gamma = seat(beta.owner, "alpha"), seat(beta.owner, "gamma")
    stored_messages = [store(draft(beta, one.routing_name, sender=one, tells="x")) for one in (alpha, gamma)]
    reply = store(draft(beta, "reply", sender=alpha))
    TeamAgent.objects.create(owner=beta.owner, name="beta", may_hear_from=["gamma"])
    assert queue_claims.claim_next(beta.pk, HOME, 0).stored is None
    stored_messages[0].refresh_from_db()
    assert (stored_messages[0].state, stored_messages[0].reason) == (Letter.State.DEAD, queue_ends.NOT_ALLOWED)
    for expected in (stored_messages[1], reply):
        found = claimed(beta)
        assert found.pk == expected.pk
        queue_claims.mark_delivered(found)


def test_a_share_that_was_taken_back_ends_the_stored_message(beta: Session) -> None:
    guest = user("guest")
    share = Share.objects.create(session=beta, user=guest, role=Share.Role.PROMPTER, shared_by=beta.owner)
    stored = store(draft(beta, 1, by=guest))
    share.delete()
    assert queue_claims.claim_next(beta.pk, HOME, 0).stored is None
    stored.refresh_from_db()
    assert (stored.state, stored.reason) == (Letter.State.DEAD, queue_ends.NOT_ALLOWED)


def test_a_stored_message_waits_while_another_caller_holds_the_agent(beta: Session) -> None:
    store(draft(beta, 1))
    held = Turn.objects.create(
        chat_id=time_ordered(),
        session=beta,
        caller=user("other"),
        surface=Surface.A2A,
        asked_at=db_now(),
        claim_until=db_now() + timedelta(minutes=1),
    )
    assert queue_claims.claim_next(beta.pk, HOME, 0) == queue_claims.Claim(is_blocked=True)
    Turn.objects.filter(pk=held.pk).update(outcome=Outcome.COMPLETED, released_at=db_now(), settled_at=db_now())
    claimed(beta)


def reply_to(stored: Letter) -> None:
    """Deliver a claimed stored message, and answer it."""
    queue_claims.mark_delivered(stored)
    content = {"role": "agent", "content": "so"}
    reply = make_frame("message", content, {"correlationId": "c-1"})
    queue_ends.answer_sender(stored, reply | {"from": "beta", "agent": "alpha", "id": "r"})


@pytest.fixture
def answered() -> Letter:
    """A stored message whose reply came, and was not taken."""
    owner = user("captain")
    alpha, beta = seat(owner, "alpha", online=True), seat(owner, "beta", online=True)
    store(draft(beta, 1, sender=alpha, requiresResponse=True))
    stored = claimed(beta)
    reply_to(stored)
    return stored


def test_the_database_holds_no_text_of_a_message_that_waits_nor_of_its_reply(answered: Letter) -> None:
    waiting = store(draft(answered.recipient, "of a secret"))
    answered.refresh_from_db()
    assert b"secret" in msgspec.json.encode(inbox.show_message(waiting))
    stored = [waiting.envelope, answered.envelope, answered.reply]
    assert all(stored)
    assert not [text for text in stored if "note" in text or "content" in text or "secret" in text]
    assert waiting.bytes > len("note of a secret")  # the size of the frame as sent


def test_a_stored_message_that_is_being_delivered_is_listed_as_queued(beta: Session) -> None:
    waiting, sending, read = (store(draft(beta, number)) for number in range(3))
    other = store(draft(seat(beta.owner, "gamma", online=True), 4))
    Letter.objects.filter(pk=read.pk).update(state=Letter.State.READ)
    Letter.objects.filter(pk=sending.pk).update(state=Letter.State.SENDING)
    owner = api(mint(beta.owner, Credential.Kind.SESSION, "t").token)

    def list_letters(query: str) -> list[tuple[int, str]]:
        return [(one["id"], one["state"]) for one in owner.get(f"/api/v1/team/letters?{query}").json()["items"]]

    assert list_letters("state=queued&agent=beta") == [(sending.pk, "queued"), (waiting.pk, "queued")]
    assert list_letters("agent=gamma") == [(other.pk, "queued")]
    assert list_letters("state=read") == [(read.pk, "read")]


def test_stored_messages_from_before_they_were_sealed_are_read_and_sealed_with_the_keys(answered: Letter) -> None:
    plain = {"content": {"role": "user", "content": "old"}, "metadata": {}, "extra": {}}
    waiting = store(draft(answered.recipient, 5))
    Letter.objects.filter(pk=waiting.pk).update(envelope=msgspec.json.encode(plain).decode())
    waiting.refresh_from_db()
    assert inbox.show_message(waiting)["content"] == plain["content"]
    said = io.StringIO()
    call_command("rotate_webhook_keys", stdout=said)
    assert " 2 letters," in said.getvalue()
    waiting.refresh_from_db()
    assert "old" not in waiting.envelope
    assert inbox.show_message(waiting)["content"] == plain["content"]
    assert queue_ends.take_reply(answered.pk) is not None


def test_a_stored_message_that_no_key_opens_shows_no_content_and_its_reply_is_an_error(answered: Letter) -> None:
    Letter.objects.filter(pk=answered.pk).update(envelope="lost", reply="lost")
    answered.refresh_from_db()
    assert inbox.show_message(answered)["content"] == {}
    error = queue_ends.take_reply(answered.pk)
    assert error is not None
    assert (error["content"]["code"], error["content"]["reason"]) == (3004, "unreadable")


def test_a_reply_is_taken_once(answered: Letter) -> None:
    taken, again = (queue_ends.take_reply(answered.pk) for _ in range(2))
    assert taken is not None
    assert (taken["content"]["content"], again) == ("so", None)


def test_a_reply_that_its_sender_did_not_take_becomes_a_stored_message(answered: Letter) -> None:
    assert jobs.end_overdue_messages() == 0  # the sender may still take it
    Letter.objects.filter(pk=answered.pk).update(reply_at=db_now() - timedelta(minutes=1))
    assert jobs.end_overdue_messages() == 1
    assert queue_ends.take_reply(answered.pk) is None
    assert answered.sender_session is not None
    kept = claimed(answered.sender_session)
    shown = inbox.show_message(kept)
    assert (shown["from"], shown["content"]["content"], kept.wants_response) == ("beta", "so", False)
    assert shown["metadata"]["correlationId"] == "c-1"


def test_stored_messages_that_expired_end_and_old_ones_are_forgotten(beta: Session) -> None:
    store(draft(beta, 1, ttl=1, requiresResponse=True))
    waits = store(draft(beta, 2))
    Letter.objects.filter(message_id="m-1").update(expires_at=db_now() - timedelta(minutes=1))
    jobs.end_overdue_messages()
    dead = Letter.objects.get(message_id="m-1")
    assert (dead.state, dead.reason) == (Letter.State.DEAD, "ttl_expired")
    error = queue_ends.take_reply(dead.pk)
    assert error is not None
    assert error["content"]["reason"] == "ttl_expired"
    assert inbox.retry_message(dead)
    assert not inbox.retry_message(dead)
    assert claimed(beta).pk == dead.pk
    Letter.objects.update(received_at=db_now() - timedelta(days=31))
    Letter.objects.filter(pk=dead.pk).update(state=Letter.State.DEAD)
    jobs.forget_messages(30)
    assert list(Letter.objects.values_list("pk", flat=True)) == [waits.pk]


def test_who_reads_a_stored_message_that_waits_is_not_sent_it(beta: Session) -> None:
    store(draft(beta, 1))
    assert inbox.mark_read(beta.pk, ["m-1"]) == 1
    assert queue_claims.claim_next(beta.pk, HOME, 0).stored is None
    assert inbox.count_messages(beta.pk) == {"total": 1, "unread": 0, "queued": 0}


def is_passed_by_stranger(recipient: Session) -> bool:
    """Deliver the next message of a recipient; True if it is asked as one that a stranger passed on."""
    stored = claimed(recipient)
    queue_claims.mark_delivered(stored)
    return read_message(stored).behalf.asker.passed_by_stranger


def test_a_stored_message_that_a_stranger_passed_on_for_the_owner_is_not_the_owners_own(beta: Session) -> None:
    own, foreign = seat(beta.owner, "own"), seat(user("else"), "foreign")
    passed: list[bool] = []
    for number, (sender, chain, is_passed) in enumerate(
        (
            (None, (), False),
            (own, (own.pk,), False),
            (foreign, (foreign.pk,), True),
            (own, (foreign.pk, own.pk), True),
            (own, (own.pk,), True),  # beside a longer chain of the owner's own
        )
    ):
        store(draft(beta, number, sender=sender, chain=chain, passed_by_stranger=is_passed))
        passed.append(is_passed_by_stranger(beta))
    assert passed == [False, False, True, True, True]


def test_a_stored_message_of_which_it_is_not_known_counts_as_passed_on_by_a_stranger(beta: Session) -> None:
    said = {"envelope": store(draft(beta, 1)).envelope, "bytes": 2, "received_at": db_now()}
    Letter.objects.all().delete()
    # As older processes do:
    Letter.objects.create(owner=beta.owner, recipient=beta, sender_owner=beta.owner, **said)
    assert is_passed_by_stranger(beta)


@pytest.mark.parametrize("case", ["owner", "stranger", "passed by stranger"])
def test_a_reply_to_what_an_agent_asked_for_a_stranger_is_not_its_owners_own(beta: Session, case: str) -> None:
    alpha, guest = seat(beta.owner, "alpha", online=True), user("guest")
    Share.objects.create(session=beta, user=guest, role=Share.Role.PROMPTER, shared_by=beta.owner)
    asked = draft(
        beta,
        sender=alpha,
        by=guest if case == "stranger" else None,
        passed_by_stranger=case == "passed by stranger",
        requiresResponse=True,
    )
    store(asked)
    reply_to(claimed(beta))
    Letter.objects.update(reply_at=db_now() - timedelta(minutes=1))
    assert jobs.end_overdue_messages() == 1
    assert is_passed_by_stranger(alpha) is (case != "owner")
