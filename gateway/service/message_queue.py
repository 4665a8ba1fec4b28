"""The queue of letters of each recipient: claiming the next one, and what becomes of it. Synchronous.

One process at a time delivers to a recipient: the letter that is being sent names it. A letter whose process died
is sent again, unless its turn says that it was delivered (docs/adr/0136).
"""

from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts import quotas
from accounts.sealing import Unreadable
from agents.core.admission import SESSION_CAP
from agents.core.ask_starter import Asker, NoSuchTarget
from agents.links.channel.requests import ActingFor
from agents.models import Process, Session, Turn
from agents.models.choices import Outcome
from agents.models.session import alive_since, online_sessions
from agents.transcript.access import Role, sessions_visible_to
from gateway.models import Letter
from gateway.service.pushes import publish_after_commit
from gateway.service.queued_messages import (
    WAITING,
    Draft,
    Obstacle,
    find_obstacle,
    open_frame,
    seal_frame,
    store_letter,
)
from gateway.service.seat_frames import carry_envelope, read_carried
from gateway.service.team_rules import AgentName, allow_message, load_peers
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frames import Json, error_frame, event_frame
from kit.clock import db_now
from kit.durations import seconds
from kit.ids import time_ordered
from kit.sql import AnyRow

HIGHER_IN_A_ROW = 16  # then one of a lower priority goes first
CLAIM_S = seconds(60.0, at_least_s=30.0)
MOST_ATTEMPTS = 5
EXPIRED_AT_ONCE = 200
REPLY_GRACE_S = seconds(15.0, at_least_s=8.0)
REPLIES_AT_ONCE = 100
TTL_EXPIRED = "ttl_expired"
CLEARED = "cleared"
NOT_ALLOWED = "not_allowed"
UNDELIVERABLE = "undeliverable"
UNREADABLE = "unreadable"
_DEAD_TEXT = {
    TTL_EXPIRED: "the agent did not take the message in time",
    CLEARED: "the agent cleared its inbox",
    UNDELIVERABLE: f"{MOST_ATTEMPTS} deliveries of the message were broken off",
    NOT_ALLOWED: "you may not send messages to this agent any more",
    UNREADABLE: "the hub cannot read the message any more",
}


class Claim(NamedTuple):
    """The letter to deliver now. `is_blocked`: without one, some wait until the agent is free.

    `has_lower`: letters of a lower priority wait, too.
    """

    letter: Letter | None = None
    is_blocked: bool = False
    has_lower: bool = False


def claim_next(session_id: int, process_id: str, higher_in_a_row: int) -> Claim:
    """Claim the next letter of a recipient for this process, if the recipient can take it now.

    `higher_in_a_row`: how many went before one of a lower priority.
    """
    # Most recipients have no letter: a thousand seats that come back at once need no lock to see that.
    waiting = Letter.objects.filter(recipient=session_id, state__in=[Letter.State.SENDING, Letter.State.QUEUED])
    return _claim_locked(session_id, process_id, higher_in_a_row) if waiting.exists() else Claim()


@transaction.atomic
def _claim_locked(session_id: int, process_id: str, higher_in_a_row: int) -> Claim:
    recipient = Session.objects.filter(pk=session_id).first()
    if recipient is None:
        return Claim()
    quotas.lock_owner(recipient.owner_id)  # one process at a time chooses
    now = db_now()
    for sending in Letter.objects.filter(recipient=recipient, state=Letter.State.SENDING):
        living = Process.objects.filter(pk=sending.claimed_by, beat_at__gt=alive_since(now))
        if sending.claimed_until is not None and sending.claimed_until > now and living.exists():
            return Claim(is_blocked=True)
        recover(sending)
    queued = Letter.objects.filter(recipient=recipient, state=Letter.State.QUEUED)
    queued = queued.select_related("recipient__owner", "sender_owner", "sender_session__owner")
    queued = queued.filter(Q(expires_at=None) | Q(expires_at__gt=now))
    highest = queued.order_by("priority", "received_at", "pk").first()
    if highest is None or recipient.pk not in online_sessions([recipient.pk]):
        return Claim()
    lower = queued.filter(priority__gt=highest.priority).order_by("received_at", "pk").first()
    letter = lower if lower is not None and higher_in_a_row >= HIGHER_IN_A_ROW else highest
    if not _may_send(letter):
        end_letter(letter, refuse_dead(NOT_ALLOWED, ErrorCode.PERMISSION_DENIED))
        return Claim(is_blocked=True)
    if not _is_free(letter):
        return Claim(is_blocked=True)
    claim = {
        "state": Letter.State.SENDING,
        "chat_id": time_ordered(),
        "claimed_by": process_id,
        "claimed_until": now + timedelta(seconds=CLAIM_S),
    }
    if not Letter.objects.filter(pk=letter.pk, state=Letter.State.QUEUED).update(**claim):
        return Claim(is_blocked=True)  # it has expired, or was read or cleared, since it was found
    for name, value in claim.items():
        setattr(letter, name, value)
    return Claim(letter, has_lower=lower is not None and letter is highest)


def recover(letter: Letter) -> None:
    """Decide what became of a letter whose process died while it sent it."""
    was_taken = Turn.objects.filter(chat_id=letter.chat_id, outcome=Outcome.COMPLETED).exists()
    if was_taken and not letter.wants_response:
        mark_delivered(letter)
    else:
        release(letter, is_uncertain=True)


def release(letter: Letter, *, is_uncertain: bool = False) -> None:
    """Put a claimed letter back. `is_uncertain`: the agent may have got it; after a few times it dies."""
    if is_uncertain and letter.attempts + 1 >= MOST_ATTEMPTS:
        end_letter(letter, refuse_dead(UNDELIVERABLE))
        return
    attempts = letter.attempts + is_uncertain
    _claimed(letter).update(state=Letter.State.QUEUED, claimed_by="", claimed_until=None, attempts=attempts)


@transaction.atomic
def mark_delivered(letter: Letter) -> None:
    """The agent has got a claimed letter; its sender is told."""
    done = {"state": Letter.State.DELIVERED, "delivered_at": db_now(), "claimed_by": "", "claimed_until": None}
    if _claimed(letter).update(**done):
        tell_sender(letter, "message.delivered")


@transaction.atomic
def end_letter(letter: Letter, refused: FrameRefused) -> bool:
    """The letter is not delivered any more; its sender gets the error. False when something was faster."""
    waits = Letter.objects.filter(pk=letter.pk, state=letter.state, chat_id=letter.chat_id)
    dead = {"state": Letter.State.DEAD, "reason": refused.reason[:32], "claimed_by": "", "claimed_until": None}
    if not waits.update(**dead):
        return False
    answer_sender(letter, make_error(letter, refused))
    return True


@transaction.atomic
def answer_sender(letter: Letter, frame: Json) -> None:
    """Keep the frame that ends the wait of a letter's sender, and wake the sender; else push the error."""
    if letter.wants_response:
        Letter.objects.filter(pk=letter.pk).update(reply=seal_frame(frame), reply_at=db_now())
        publish_after_commit(
            letter.sender_owner_id, reply_channel(letter.pk), _event_frame(letter, "message.ended")
        )
    elif letter.tells:
        publish_after_commit(receipts_owner(letter), letter.tells, frame)


def make_error(letter: Letter, refused: FrameRefused) -> Json:
    """An error about a letter, for its sender."""
    return error_frame(refused.about(letter.correlation_id, letter.message_id))


def refuse_dead(reason: str, code: ErrorCode = ErrorCode.AGENT_OFFLINE) -> FrameRefused:
    """The error for the sender of a letter that died."""
    return FrameRefused(code, _DEAD_TEXT[reason], reason=reason)


def tell_sender(letter: Letter, event: str) -> None:
    """Push an event about a letter to its sender, if it is connected and takes events."""
    if letter.tells:
        publish_after_commit(receipts_owner(letter), letter.tells, _event_frame(letter, event))


def _event_frame(letter: Letter, event: str) -> Json:
    about = {"correlationId": letter.correlation_id, "parentId": letter.message_id}
    metadata = {key: value for key, value in about.items() if value}
    return event_frame(event, {"agent": letter.addressed_to, "messageId": letter.message_id}, metadata)


def take_reply(letter_id: int) -> Json | None:
    """The frame that ends the wait of a letter's sender, once; None while there is none."""
    letter = Letter.objects.select_related("recipient").filter(pk=letter_id).first()
    if letter is None:
        return error_frame(FrameRefused(ErrorCode.AGENT_OFFLINE, "the agent is gone"))
    now = db_now()
    if letter.state == Letter.State.QUEUED and letter.expires_at is not None and letter.expires_at <= now:
        expire(letter)
        letter.refresh_from_db()
    if letter.reply_at is not None:
        taken = Letter.objects.filter(pk=letter_id, reply_at__isnull=False).update(reply="", reply_at=None)
        return _open_reply(letter) if taken else {}
    if letter.expires_at is not None and letter.expires_at + timedelta(seconds=REPLY_GRACE_S) < now:
        refused = FrameRefused(ErrorCode.AGENT_ERROR, "no reply came in time", reason="response_timeout")
        return make_error(letter, refused)
    return None


def has_died_unsent(letter_id: int) -> bool:
    """Whether a letter is dead, and the gateway knows that it never sent the letter to the agent."""
    return Letter.objects.filter(pk=letter_id, state=Letter.State.DEAD, attempts=0).exists()


def expire_due(*, overdue_s: float = 0.0) -> int:
    """End the letters whose time is up, and was so long ago; how many."""
    due = Letter.objects.filter(
        state=Letter.State.QUEUED, expires_at__lte=db_now() - timedelta(seconds=overdue_s)
    ).select_related("recipient")
    return sum(expire(letter) for letter in due.order_by("expires_at")[:EXPIRED_AT_ONCE])


def expire(letter: Letter) -> bool:
    """The time of a letter is up."""
    is_there = bool(online_sessions([letter.recipient_id]))
    code = ErrorCode.AGENT_BUSY if is_there else ErrorCode.AGENT_OFFLINE
    return end_letter(letter, refuse_dead(TTL_EXPIRED, code))


def find_due_recipients(process_id: str) -> list[int]:
    """The seats of this process that have letters."""
    found: QuerySet[Session, int] = Session.objects.filter(
        connection__process_id=process_id, pk__in=_queued().values("recipient")
    ).values_list("pk", flat=True)
    return list(found)


def _queued() -> QuerySet[Letter]:
    return Letter.objects.filter(state__in=WAITING)


are_queued = AnyRow(_queued())  # letters that wait for their recipients


def store_untaken_replies() -> int:
    """Store replies that no sender took, as letters to the seats that asked; how many.

    The sender's connection is gone, or its process. A client without a seat has no inbox: its reply is dropped.
    """
    before = db_now() - timedelta(seconds=REPLY_GRACE_S)
    found = Letter.objects.filter(reply_at__lt=before).select_related("recipient__owner").order_by("reply_at")
    return sum(map(_store_reply, found[:REPLIES_AT_ONCE]))


def _store_reply(letter: Letter) -> bool:
    row = Letter.objects.filter(pk=letter.pk, reply_at=letter.reply_at)
    frame = _open_reply(letter)
    try:
        with transaction.atomic():
            if not row.update(reply="", reply_at=None) or letter.sender_session_id is None:
                return False
            if frame["type"] == "message":
                store_letter(_draft_reply(letter, letter.sender_session_id, frame), is_wanted=True)
    except (FrameRefused, NoSuchTarget):
        row.update(reply_at=db_now())  # its turn comes again: there may be room then
        return False
    return True


def _open_reply(letter: Letter) -> Json:
    """The reply that a letter keeps; an error if no key opens the reply any more."""
    try:
        return open_frame(letter.reply)
    except Unreadable:
        refused = FrameRefused(ErrorCode.AGENT_ERROR, "the reply cannot be read any more", reason=UNREADABLE)
        return make_error(letter, refused)


def _draft_reply(letter: Letter, session_id: int, frame: Json) -> Draft:
    owner = letter.recipient.owner
    asker = Asker(
        user_id=owner.pk,
        login=owner.login,
        chain=(letter.recipient_id,),
        # What an agent answers a stranger is not its owner's own.
        passed_by_stranger=letter.passed_by_stranger or letter.sender_owner_id != owner.pk,
    )
    envelope = read_carried(frame, frame["agent"])
    return Draft(
        recipient_id=session_id,
        behalf=ActingFor(asker, letter.recipient_id),
        sender=frame["from"],
        tells="",
        correlation_id=letter.correlation_id,
        envelope=envelope,
        place=None,  # the reply is in its session already
        carried=carry_envelope(envelope, frame["from"], ""),
        received_at=db_now(),
        wait_s=0.0,
    )


def receipts_owner(letter: Letter) -> int:
    """The team in which the channel of a letter's receipts is."""
    return letter.sender_session.owner_id if letter.sender_session is not None else letter.sender_owner_id


def receipts_channel(session_id: int, client_id: str) -> str:
    """The channel on which a sender is told what became of its letters: a seat's own, also after it comes back."""
    return f"letters of {session_id or client_id}"


def reply_channel(letter_id: int) -> str:
    """The channel on which the sender of a letter that wants a response waits."""
    return f"reply to {letter_id}"


def _claimed(letter: Letter) -> QuerySet[Letter]:
    """The row, while this claim on it holds."""
    return Letter.objects.filter(pk=letter.pk, state=Letter.State.SENDING, chat_id=letter.chat_id)


def _may_send(letter: Letter) -> bool:
    """Whether the sender may still send to the recipient: a share may have been taken back, or a list changed."""
    if letter.tells and letter.sender_session is not None:  # a reply tells nothing, and no list holds for it
        sender, recipient = _name_of(letter.sender_session), _name_of(letter.recipient)
        if not allow_message(sender, load_peers(sender), recipient, load_peers(recipient)):
            return False
    if letter.sender_owner_id == letter.owner_id:
        return True
    visible = sessions_visible_to(letter.sender_owner_id, at_least=Role.PROMPTER)
    return visible.filter(pk=letter.recipient_id).exists()


def _name_of(seat: Session) -> AgentName:
    return AgentName(seat.owner_id, seat.owner.login, seat.routing_name)


def _is_free(letter: Letter) -> bool:
    """Whether the recipient takes a letter of this sender now: no other caller holds it, and it is not busy."""
    held = Turn.objects.holding().filter(session=letter.recipient_id, claim_until__gt=db_now())
    callers = list(held.values_list("caller_id", flat=True)[:SESSION_CAP])
    if len(callers) >= SESSION_CAP or any(one != letter.sender_owner_id for one in callers):
        return False
    # No letter is ahead of this one for the recipient: only its status counts.
    return find_obstacle(letter.recipient_id, 0, "", Letter.Priority.NORMAL) is not Obstacle.STATUS
