"""The queue of stored messages of each recipient: claiming the next one, and what becomes of it. Synchronous.

One process at a time delivers to a recipient: the row of the message that is being sent names the process. If that
process dies, the message is sent again, unless its turn says that the agent got it (docs/adr/0136).
"""

from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts import quotas
from accounts.sealing import SecretUnreadable
from agents.core.admission import SESSION_CAP
from agents.core.ask_starter import AskingUser, NoSuchTarget
from agents.links.channel.driving import ActingFor
from agents.models import Process, Session, Turn
from agents.models.choices import Outcome
from agents.models.session import alive_since, online_sessions
from agents.transcript.access import SessionRole, sessions_visible_to
from gateway.models import Letter
from gateway.service.pushes import publish_after_commit
from gateway.service.queued_messages import (
    WAITING,
    Draft,
    Obstacle,
    find_obstacle,
    open_frame,
    seal_frame,
    store_message,
)
from gateway.service.seat_frames import carry_envelope, read_carried
from gateway.service.team_rules import AgentName, allow_message, load_peers
from gateway.wire.errors import FrameRefused, GatewayErrorCode
from gateway.wire.frames import Json, error_frame, event_frame
from kit.clock import db_now
from kit.durations import seconds
from kit.ids import time_ordered
from kit.sql import AnyRow

HIGHER_IN_A_ROW = 16  # then one of a lower priority goes first
CLAIM_S = seconds(60.0, at_least_s=30.0)
MAX_ATTEMPTS = 5
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
    UNDELIVERABLE: f"{MAX_ATTEMPTS} deliveries of the message were broken off",
    NOT_ALLOWED: "you may not send messages to this agent any more",
    UNREADABLE: "the hub cannot read the message any more",
}


class Claim(NamedTuple):
    """The stored message to deliver now. `is_blocked`: without one, some wait until the agent is free.

    `has_lower`: stored messages of a lower priority wait, too.
    """

    stored: Letter | None = None
    is_blocked: bool = False
    has_lower: bool = False


def claim_next(session_id: int, process_id: str, higher_in_a_row: int) -> Claim:
    """Claim the next stored message of a recipient for this process, if the recipient can take it now.

    `higher_in_a_row`: how many went before one of a lower priority.
    """
    # Most recipients have no stored message: a thousand seats that come back at once need no lock to see that.
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
    stored = lower if lower is not None and higher_in_a_row >= HIGHER_IN_A_ROW else highest
    if not _may_send(stored):
        end_message(stored, dead_message_error(NOT_ALLOWED, GatewayErrorCode.PERMISSION_DENIED))
        return Claim(is_blocked=True)
    if not _is_free(stored):
        return Claim(is_blocked=True)
    claim = {
        "state": Letter.State.SENDING,
        "chat_id": time_ordered(),
        "claimed_by": process_id,
        "claimed_until": now + timedelta(seconds=CLAIM_S),
    }
    if not Letter.objects.filter(pk=stored.pk, state=Letter.State.QUEUED).update(**claim):
        return Claim(is_blocked=True)  # it has expired, or was read or cleared, since it was found
    for name, value in claim.items():
        setattr(stored, name, value)
    return Claim(stored, has_lower=lower is not None and stored is highest)


def recover(stored: Letter) -> None:
    """Decide what became of a stored message whose process died while it sent it."""
    was_taken = Turn.objects.filter(chat_id=stored.chat_id, outcome=Outcome.COMPLETED).exists()
    if was_taken and not stored.wants_response:
        mark_delivered(stored)
    else:
        release(stored, is_uncertain=True)


def release(stored: Letter, *, is_uncertain: bool = False) -> None:
    """Put a claimed stored message back. `is_uncertain`: the agent may have got it; after a few times it dies."""
    if is_uncertain and stored.attempts + 1 >= MAX_ATTEMPTS:
        end_message(stored, dead_message_error(UNDELIVERABLE))
        return
    attempts = stored.attempts + is_uncertain
    _claimed(stored).update(state=Letter.State.QUEUED, claimed_by="", claimed_until=None, attempts=attempts)


@transaction.atomic
def mark_delivered(stored: Letter) -> None:
    """The agent has got a claimed stored message; its sender is told."""
    done = {"state": Letter.State.DELIVERED, "delivered_at": db_now(), "claimed_by": "", "claimed_until": None}
    if _claimed(stored).update(**done):
        tell_sender(stored, "message.delivered")


@transaction.atomic
def end_message(stored: Letter, refused: FrameRefused) -> bool:
    """The stored message is not delivered any more; its sender gets the error. False when something was faster."""
    waits = Letter.objects.filter(pk=stored.pk, state=stored.state, chat_id=stored.chat_id)
    dead = {"state": Letter.State.DEAD, "reason": refused.reason[:32], "claimed_by": "", "claimed_until": None}
    if not waits.update(**dead):
        return False
    answer_sender(stored, make_error(stored, refused))
    return True


@transaction.atomic
def answer_sender(stored: Letter, frame: Json) -> None:
    """Keep the frame that ends the wait of a stored message's sender, and wake the sender; else push the error."""
    if stored.wants_response:
        Letter.objects.filter(pk=stored.pk).update(reply=seal_frame(frame), reply_at=db_now())
        publish_after_commit(
            stored.sender_owner_id, reply_channel(stored.pk), _event_frame(stored, "message.ended")
        )
    elif stored.tells:
        publish_after_commit(receipts_owner(stored), stored.tells, frame)


def make_error(stored: Letter, refused: FrameRefused) -> Json:
    """An error about a stored message, for its sender."""
    return error_frame(refused.about(stored.correlation_id, stored.message_id))


def dead_message_error(reason: str, code: GatewayErrorCode = GatewayErrorCode.AGENT_OFFLINE) -> FrameRefused:
    """The error for the sender of a stored message that died."""
    return FrameRefused(code, _DEAD_TEXT[reason], reason=reason)


def tell_sender(stored: Letter, event: str) -> None:
    """Push an event about a stored message to its sender, if it is connected and takes events."""
    if stored.tells:
        publish_after_commit(receipts_owner(stored), stored.tells, _event_frame(stored, event))


def _event_frame(stored: Letter, event: str) -> Json:
    about = {"correlationId": stored.correlation_id, "parentId": stored.message_id}
    metadata = {key: value for key, value in about.items() if value}
    return event_frame(event, {"agent": stored.addressed_to, "messageId": stored.message_id}, metadata)


def take_reply(stored_id: int) -> Json | None:
    """The frame that ends the wait of a stored message's sender, once; None while there is none."""
    stored = Letter.objects.select_related("recipient").filter(pk=stored_id).first()
    if stored is None:
        return error_frame(FrameRefused(GatewayErrorCode.AGENT_OFFLINE, "the agent is gone"))
    now = db_now()
    if stored.state == Letter.State.QUEUED and stored.expires_at is not None and stored.expires_at <= now:
        expire(stored)
        stored.refresh_from_db()
    if stored.reply_at is not None:
        taken = Letter.objects.filter(pk=stored_id, reply_at__isnull=False).update(reply="", reply_at=None)
        return _open_reply(stored) if taken else {}
    if stored.expires_at is not None and stored.expires_at + timedelta(seconds=REPLY_GRACE_S) < now:
        refused = FrameRefused(GatewayErrorCode.AGENT_ERROR, "no reply came in time", reason="response_timeout")
        return make_error(stored, refused)
    return None


def has_died_unsent(stored_id: int) -> bool:
    """True if a stored message is dead, and the gateway knows that the agent never got it."""
    return Letter.objects.filter(pk=stored_id, state=Letter.State.DEAD, attempts=0).exists()


def expire_due(*, overdue_s: float = 0.0) -> int:
    """End the stored messages whose time is up, and was so long ago; how many."""
    due = Letter.objects.filter(
        state=Letter.State.QUEUED, expires_at__lte=db_now() - timedelta(seconds=overdue_s)
    ).select_related("recipient")
    return sum(expire(stored) for stored in due.order_by("expires_at")[:EXPIRED_AT_ONCE])


def expire(stored: Letter) -> bool:
    """The time of a stored message is up."""
    is_there = bool(online_sessions([stored.recipient_id]))
    code = GatewayErrorCode.AGENT_BUSY if is_there else GatewayErrorCode.AGENT_OFFLINE
    return end_message(stored, dead_message_error(TTL_EXPIRED, code))


def find_due_recipients(process_id: str) -> list[int]:
    """The seats of this process that have stored messages."""
    found: QuerySet[Session, int] = Session.objects.filter(
        connection__process_id=process_id, pk__in=_queued().values("recipient")
    ).values_list("pk", flat=True)
    return list(found)


def _queued() -> QuerySet[Letter]:
    return Letter.objects.filter(state__in=WAITING)


are_queued = AnyRow(_queued())  # stored messages that wait for their recipients


def store_untaken_replies() -> int:
    """Store replies that no sender took, as stored messages to the seats that asked; how many.

    The sender's connection is gone, or its process. A client without a seat has no inbox: its reply is dropped.
    """
    before = db_now() - timedelta(seconds=REPLY_GRACE_S)
    found = Letter.objects.filter(reply_at__lt=before).select_related("recipient__owner").order_by("reply_at")
    return sum(map(_store_reply, found[:REPLIES_AT_ONCE]))


def _store_reply(stored: Letter) -> bool:
    row = Letter.objects.filter(pk=stored.pk, reply_at=stored.reply_at)
    frame = _open_reply(stored)
    try:
        with transaction.atomic():
            if not row.update(reply="", reply_at=None) or stored.sender_session_id is None:
                return False
            if frame["type"] == "message":
                store_message(_draft_reply(stored, stored.sender_session_id, frame), is_wanted=True)
    except (FrameRefused, NoSuchTarget):
        row.update(reply_at=db_now())  # its turn comes again: there may be room then
        return False
    return True


def _open_reply(stored: Letter) -> Json:
    """The reply that a stored message keeps; an error if no key opens the reply any more."""
    try:
        return open_frame(stored.reply)
    except SecretUnreadable:
        refused = FrameRefused(
            GatewayErrorCode.AGENT_ERROR, "the reply cannot be read any more", reason=UNREADABLE
        )
        return make_error(stored, refused)


def _draft_reply(stored: Letter, session_id: int, frame: Json) -> Draft:
    owner = stored.recipient.owner
    asker = AskingUser(
        user_id=owner.pk,
        login=owner.login,
        chain=(stored.recipient_id,),
        # What an agent answers a stranger is not its owner's own.
        passed_by_stranger=stored.passed_by_stranger or stored.sender_owner_id != owner.pk,
    )
    envelope = read_carried(frame, frame["agent"])
    return Draft(
        recipient_id=session_id,
        behalf=ActingFor(asker, stored.recipient_id),
        sender=frame["from"],
        tells="",
        correlation_id=stored.correlation_id,
        envelope=envelope,
        place=None,  # the reply is in its session already
        carried=carry_envelope(envelope, frame["from"], ""),
        received_at=db_now(),
        wait_s=0.0,
    )


def receipts_owner(stored: Letter) -> int:
    """The team in which the channel of a stored message's receipts is."""
    return stored.sender_session.owner_id if stored.sender_session is not None else stored.sender_owner_id


def receipts_channel(session_id: int, client_id: str) -> str:
    """The channel on which a sender gets receipts: that of its seat, also over a later connection of the seat.

    Rows hold this text (`Letter.tells`), so it does not change.
    """
    return f"letters of {session_id or client_id}"


def reply_channel(stored_id: int) -> str:
    """The channel on which the sender of a stored message that wants a response waits."""
    return f"reply to {stored_id}"


def _claimed(stored: Letter) -> QuerySet[Letter]:
    """The row, while this claim on it holds."""
    return Letter.objects.filter(pk=stored.pk, state=Letter.State.SENDING, chat_id=stored.chat_id)


def _may_send(stored: Letter) -> bool:
    """True if the sender may still send to the recipient: a share may have been taken back, or a list changed."""
    if stored.tells and stored.sender_session is not None:  # a reply tells nothing, and no list holds for it
        sender, recipient = _name_of(stored.sender_session), _name_of(stored.recipient)
        if not allow_message(sender, load_peers(sender), recipient, load_peers(recipient)):
            return False
    if stored.sender_owner_id == stored.owner_id:
        return True
    visible = sessions_visible_to(stored.sender_owner_id, at_least=SessionRole.PROMPTER)
    return visible.filter(pk=stored.recipient_id).exists()


def _name_of(seat: Session) -> AgentName:
    return AgentName(seat.owner_id, seat.owner.login, seat.routing_name)


def _is_free(stored: Letter) -> bool:
    """True if the recipient takes a message of this sender now: no other caller holds it, and it is not busy."""
    held = Turn.objects.holding().filter(session=stored.recipient_id, claim_until__gt=db_now())
    callers = list(held.values_list("caller_id", flat=True)[:SESSION_CAP])
    if len(callers) >= SESSION_CAP or any(one != stored.sender_owner_id for one in callers):
        return False
    # No stored message is ahead of this one for the recipient: only its status counts.
    return find_obstacle(stored.recipient_id, 0, "", Letter.Priority.NORMAL) is not Obstacle.STATUS
