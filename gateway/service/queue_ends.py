"""The ends of stored messages, and what their senders get: receipts, errors and replies. Synchronous."""

from datetime import timedelta

from django.db import transaction

from accounts.sealing import SecretUnreadable
from agents.core.ask_starter import AskingUser, NoSuchTarget
from agents.links.channel.driving import ActingFor
from agents.models.session import online_sessions
from gateway.models import Letter
from gateway.service.messages import RoutedMessage, make_stored
from gateway.service.pushes import publish_after_commit
from gateway.service.queue_rows import open_frame, seal_frame, store_message
from gateway.service.seat_frames import read_carried
from gateway.wire.errors import FrameRefused, GatewayErrorCode
from gateway.wire.frames import Json, error_frame, event_frame
from kit.clock import db_now
from kit.durations import seconds

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


@transaction.atomic
def end_message(stored: Letter, refused: FrameRefused) -> bool:
    """End a stored message with an error for its sender; False if the message has already ended otherwise."""
    waits = Letter.objects.filter(pk=stored.pk, state=stored.state, chat_id=stored.chat_id)
    dead = {"state": Letter.State.DEAD, "reason": refused.reason[:32], "claimed_by": "", "claimed_until": None}
    if not waits.update(**dead):
        return False
    answer_sender(stored, make_error(stored, refused))
    return True


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
    """End a stored message whose time is up."""
    is_there = bool(online_sessions([stored.recipient_id]))
    code = GatewayErrorCode.AGENT_BUSY if is_there else GatewayErrorCode.AGENT_OFFLINE
    return end_message(stored, dead_message_error(TTL_EXPIRED, code))


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


def store_untaken_replies() -> int:
    """Store replies that no sender took, as stored messages to the seats that asked; returns their number.

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
                store_message(_make_reply(stored, stored.sender_session_id, frame), is_wanted=True)
    except (FrameRefused, NoSuchTarget):
        row.update(reply_at=db_now())  # tried again later: there may be room then
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


def _make_reply(stored: Letter, session_id: int, frame: Json) -> RoutedMessage:
    """The reply as a message to the seat that asked; it is in its session already."""
    owner = stored.recipient.owner
    asker = AskingUser(
        user_id=owner.pk,
        login=owner.login,
        chain=(stored.recipient_id,),
        # An agent's answer to a stranger is not its owner's own.
        passed_by_stranger=stored.passed_by_stranger or stored.sender_owner_id != owner.pk,
    )
    behalf = ActingFor(asker, stored.recipient_id)
    envelope = read_carried(frame, frame["agent"])
    return make_stored(session_id, envelope, behalf, frame["from"], key=stored.correlation_id)


def receipts_owner(stored: Letter) -> int:
    """The team in which the channel of a stored message's receipts is."""
    return stored.sender_session.owner_id if stored.sender_session is not None else stored.sender_owner_id


def reply_channel(stored_id: int) -> str:
    """The channel on which the sender of a stored message that wants a response waits."""
    return f"reply to {stored_id}"
