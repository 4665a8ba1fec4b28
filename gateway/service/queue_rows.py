"""The rows of the queue: messages that wait in the database for an agent that is offline or busy. Synchronous."""

from collections.abc import Collection
from datetime import timedelta
from enum import StrEnum

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts import quotas, sealing
from accounts.quotas import EVERY_ROW
from accounts.sealing import SecretUnreadable
from agents.core.ask_starter import AskingUser, NoSuchTarget
from agents.core.types import AskTarget
from agents.links.channel.driving import ActingFor
from agents.models import Connection, Session
from gateway import limits
from gateway.models import Letter, TeamAgent, TeamPolicy
from gateway.service.messages import MessageToAsk, RoutedMessage
from gateway.service.seat import NO_SESSION
from gateway.service.seat_frames import as_text, read_carried
from gateway.service.session_entries import make_place, write_held
from gateway.wire.frames import Envelope, Json, encode
from kit import sql
from kit.clock import db_now
from kit.durations import seconds

PRIORITIES = {one.label.lower(): one for one in Letter.Priority}
WAITING = (Letter.State.QUEUED, Letter.State.SENDING)
KEPT = (Letter.State.DELIVERED, Letter.State.READ)
SENDERS_SHARE = 4  # one sender fills at most a quarter of an inbox
FORGOTTEN_AT_ONCE = 200
DELIVERED_WITHIN_S = seconds(20.0, at_least_s=8.0)
PURPOSE = b"a2a-v1 letters"  # part of the key: rows sealed under another purpose could not be opened
_PLAIN = "{"  # the beginning of a frame that was stored before frames were sealed


class Obstacle(StrEnum):
    """The reason why a message waits although its agent can be asked."""

    NONE = ""
    # Waiting messages of the same sender, recipient and priority, which the message would overtake.
    EARLIER = "earlier messages"
    STATUS = "status"  # the agent says that it is busy


def priority_of(envelope: Envelope) -> Letter.Priority:
    """The priority of a message; normal when it names none."""
    return PRIORITIES[envelope.metadata.get("priority", "normal")]


def find_obstacle(session_id: int, caller_id: int, sender: str, priority: Letter.Priority) -> Obstacle:
    """The reason why a message of this sender to a seat waits, although the seat may be there."""
    ahead = Letter.objects.filter(
        recipient=OuterRef("pk"), state__in=WAITING, priority=priority, sender_owner=caller_id, sender=sender
    )
    connected = Connection.objects.filter(session=OuterRef("pk"))
    busy = TeamAgent.objects.filter(
        owner=OuterRef("owner"), name=OuterRef("routing_name"), status=TeamAgent.Status.BUSY
    )
    found = Session.objects.filter(pk=session_id).values_list(Exists(ahead), Exists(connected), Exists(busy))
    has_earlier, is_connected, is_busy = found.first() or (False, False, False)
    if has_earlier:
        return Obstacle.EARLIER
    return Obstacle.STATUS if is_connected and is_busy else Obstacle.NONE


@transaction.atomic
def store_message(
    message: RoutedMessage, *, is_wanted: bool = False, held: sql.Query | None = None
) -> Letter | None:
    """Put a message into the recipient's inbox. None: neither its `ttl` nor its team's policy lets it wait.

    A message that waits already is not stored twice. `is_wanted`: the message waits in any case. `held`: writes
    its entry of sessions, in the same transaction.

    Raises:
        NoSuchTarget: the recipient is gone.
        FrameRefused: 3003 `inbox_full`.
    """
    recipient = Session.objects.filter(pk=message.target.session_id).first()
    if recipient is None:
        raise NoSuchTarget
    policy = TeamPolicy.objects.filter(owner_id=recipient.owner_id, queues_messages=True)
    if not is_wanted and message.envelope.metadata.get("ttl") is None and not policy.exists():
        return None
    quotas.lock_owner(recipient.owner_id)
    if message.envelope.id and (twin := _find_twin(message)) is not None:
        return twin
    size = len(encode(message.carried))
    _check_room(recipient.owner_id, message, size)
    asker, lives_for = message.behalf.asker, message.lives_for
    stored = Letter.objects.create(
        owner_id=recipient.owner_id,
        recipient=recipient,
        addressed_to=message.envelope.agent,
        sender_owner_id=asker.user_id,
        sender_session_id=message.behalf.session_id or None,
        sender=message.sender,
        chain=list(asker.chain),
        passed_by_stranger=asker.passed_by_stranger,
        message_id=message.carried["id"],
        correlation_id=message.key,
        wants_response=message.wants_response,
        envelope=seal_frame(message.carried),
        bytes=size,
        priority=priority_of(message.envelope),
        tells=message.tells,
        received_at=message.received_at,
        expires_at=None if lives_for is None else message.received_at + lives_for,
    )
    if held is not None:
        write_held(held)
    return stored


def _find_twin(message: RoutedMessage) -> Letter | None:
    """The stored message that waits with the same id, sender, recipient and content."""
    same = Letter.objects.filter(
        recipient_id=message.target.session_id,
        state__in=WAITING,
        message_id=message.envelope.id,
        sender_owner=message.behalf.asker.user_id,
        sender=message.sender,
    )
    content = message.envelope.content
    return next((one for one in same if show_frame(one.envelope)["content"] == content), None)


def read_message(stored: Letter) -> RoutedMessage:
    """A stored message as it is sent, with the time that it has left.

    Raises:
        SecretUnreadable: no key opens its frame.
    """
    carried, recipient, sender = open_frame(stored.envelope), stored.recipient, stored.sender_owner
    if stored.expires_at is not None:
        left_s = round((stored.expires_at - db_now()).total_seconds(), 3)
        carried["metadata"] = carried["metadata"] | {"ttl": max(left_s, 0.001)}
    envelope = read_carried(carried, stored.addressed_to)
    asker = AskingUser(
        user_id=sender.pk,
        login=sender.login,
        chain=tuple(stored.chain),
        passed_by_stranger=stored.passed_by_stranger,
    )
    place = None
    if sender.pk == stored.owner_id:
        name = stored.sender if stored.sender_session_id else ""
        place = make_place(sender.pk, recipient.owner.login, name, recipient.routing_name, envelope.session_id)
    return RoutedMessage(
        target=AskTarget(None, recipient.pk, f"{recipient.owner.login}/{recipient.routing_name}"),
        envelope=envelope,
        behalf=ActingFor(asker, stored.sender_session_id or NO_SESSION),
        sender=stored.sender,
        key=stored.correlation_id,
        question=MessageToAsk(as_text(envelope.said)),
        wait_s=envelope.metadata["ttl"] if stored.wants_response else DELIVERED_WITHIN_S,
        wants_response=stored.wants_response,
        carried=carried,
        received_at=stored.received_at,
        place=place,
        tells=stored.tells,
    )


def _check_room(owner_id: int, message: RoutedMessage, size: int) -> None:
    """Make room among what was delivered, and refuse what does not fit; the owner's row is locked.

    Raises:
        FrameRefused: 3003 `inbox_full`.
    """
    caller_id = message.behalf.asker.user_id
    own = Q(sender_owner=caller_id, state__in=WAITING)
    if caller_id == owner_id:  # all agents of another owner are one sender
        own &= Q(sender=message.sender)
    if not _has_room(owner_id, size, own, SENDERS_SHARE):
        text = "as many of your messages wait as of one sender may"
        raise limits.LETTERS.refused_as(text, limits.LETTERS.code)
    if not _has_room(owner_id, size):
        oldest = Letter.objects.filter(owner_id=owner_id, state__in=KEPT, reply_at=None).order_by("pk")
        Letter.objects.filter(pk__in=list(oldest.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])).delete()
        limits.LETTERS.check(owner_id)
        limits.LETTERS_TEXT.check(owner_id, size)


def _has_room(owner_id: int, size: int, among: Q = EVERY_ROW, share: int = 1) -> bool:
    """True if a stored message of that size fits into the inboxes, or into a sender's share of them."""
    is_one_more = limits.LETTERS.has_room(owner_id, among=among, share=share)
    return is_one_more and limits.LETTERS_TEXT.has_room(owner_id, size, among=among, share=share)


def has_outstanding(session_id: int) -> bool:
    """True if receipts for messages that a seat sent may still come."""
    states: Collection[str] = (*WAITING, Letter.State.DELIVERED)
    return Letter.objects.filter(sender_session=session_id, state__in=states).exists()


def find_old_messages(kept_days: int) -> QuerySet[Letter]:
    """The stored messages that came longer ago than that, and do not wait any more."""
    before = db_now() - timedelta(days=kept_days)
    return Letter.objects.exclude(state__in=WAITING).filter(received_at__lt=before)


def seal_frame(frame: Json) -> str:
    """Encrypt a frame for storage."""
    return sealing.seal_json(frame, PURPOSE)


def open_frame(stored: str) -> Json:
    """Decrypt a frame from its row.

    Raises:
        Unreadable: the frame is damaged, or no key opens it.
    """
    if stored.startswith(_PLAIN):
        plain: Json = msgspec.json.decode(stored)
        return plain
    opened: Json = sealing.open_json(stored, PURPOSE)
    return opened


def show_frame(stored: str) -> Json:
    """A frame for a list or an export of all rows; an unreadable frame has empty content."""
    try:
        return open_frame(stored) if stored else {}
    except SecretUnreadable:
        return {"content": {}, "metadata": {}}


def reseal_messages() -> tuple[int, int]:
    """Seal all stored frames anew with the newest key; the numbers of sealed and of unreadable messages."""
    for column in ("envelope", "reply"):
        for row in Letter.objects.filter(**{f"{column}__startswith": _PLAIN}).only(column).iterator():
            plain = getattr(row, column)
            as_read = Letter.objects.filter(pk=row.pk, **{column: plain})
            as_read.update(**{column: seal_frame(msgspec.json.decode(plain))})
    return sealing.reseal_all(Letter.objects.all(), PURPOSE, "envelope", "reply")
