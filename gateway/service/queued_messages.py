"""Stored messages: messages that wait in the database for an agent that is offline or busy. Storing them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts import quotas, sealing
from accounts.quotas import EVERY_ROW
from accounts.sealing import SecretUnreadable
from agents.core.ask_starter import NoSuchTarget
from agents.links.channel.driving import ActingFor
from agents.models import Connection, Session
from gateway import limits
from gateway.models import Letter, TeamAgent, TeamPolicy
from gateway.service.session_entries import HeldRecord, Place
from gateway.wire.frames import LONGEST_TTL_S, Envelope, Json, encode
from kit.clock import db_now

PRIORITIES = {one.label.lower(): one for one in Letter.Priority}
WAITING = (Letter.State.QUEUED, Letter.State.SENDING)
KEPT = (Letter.State.DELIVERED, Letter.State.READ)
SENDERS_SHARE = 4  # one sender fills at most a quarter of an inbox
FORGOTTEN_AT_ONCE = 200
PURPOSE = b"a2a-v1 letters"  # part of the key: rows sealed under another purpose could not be opened
_PLAIN = "{"  # the beginning of a frame that was stored before frames were sealed


class Obstacle(StrEnum):
    """The reason why a message to an agent that can be asked waits all the same."""

    NONE = ""
    EARLIER = "earlier messages"  # of the same sender, recipient and priority: it would overtake them
    STATUS = "status"  # the agent says that it is busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message that may be stored. `sender`: the name that the recipient sees; `tells`: see `Letter`.

    `place`: the sessions in which it belongs; `carried`: what its frame holds; `wait_s`: how long a sender waits
    that wants a response.
    """

    recipient_id: int
    behalf: ActingFor
    sender: str
    tells: str
    correlation_id: str
    envelope: Envelope
    place: Place | None
    carried: Json
    received_at: datetime
    wait_s: float

    @property
    def lives_s(self) -> float | None:
        """The seconds for which the message may wait; None: for ever."""
        ttl_s = self.envelope.metadata.get("ttl")
        if self.envelope.wants_response:
            return self.wait_s
        return min(ttl_s, LONGEST_TTL_S) if ttl_s is not None else None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """The facts that a sender gets about a stored message.

    `expires_at`: None, it waits for ever. `is_new`: no repetition.
    """

    id: int
    message_id: str
    expires_at: datetime | None
    is_new: bool = True


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
    draft: Draft, *, is_wanted: bool = False, held: HeldRecord | None = None
) -> StoredMessage | None:
    """Put a message into the recipient's inbox. None: neither its `ttl` nor its team's policy lets it wait.

    A message that waits already is not stored twice. `is_wanted`: the message waits in any case. `held`: its
    entry of sessions, which is stored with the message.

    Raises:
        NoSuchTarget: the recipient is gone.
        FrameRefused: 3003 `inbox_full`.
    """
    recipient = Session.objects.filter(pk=draft.recipient_id).first()
    if recipient is None:
        raise NoSuchTarget
    policy = TeamPolicy.objects.filter(owner_id=recipient.owner_id, queues_messages=True)
    if not is_wanted and draft.envelope.metadata.get("ttl") is None and not policy.exists():
        return None
    quotas.lock_owner(recipient.owner_id)
    if (twin := _find_twin(draft)) is not None:
        return StoredMessage(twin.pk, twin.message_id, twin.expires_at, is_new=False)
    size = len(encode(draft.carried))
    _check_room(recipient.owner_id, draft, size)
    lives_s = draft.lives_s
    stored = Letter.objects.create(
        owner_id=recipient.owner_id,
        recipient=recipient,
        addressed_to=draft.envelope.agent,
        sender_owner_id=draft.behalf.asker.user_id,
        sender_session_id=draft.behalf.session_id or None,
        sender=draft.sender,
        chain=list(draft.behalf.asker.chain),
        passed_by_stranger=draft.behalf.asker.passed_by_stranger,
        message_id=draft.carried["id"],
        correlation_id=draft.correlation_id,
        wants_response=draft.envelope.wants_response,
        envelope=seal_frame(draft.carried),
        bytes=size,
        priority=priority_of(draft.envelope),
        tells=draft.tells,
        received_at=draft.received_at,
        expires_at=None if lives_s is None else draft.received_at + timedelta(seconds=lives_s),
    )
    if held is not None:
        held.row.save(force_insert=True)
    return StoredMessage(stored.pk, stored.message_id, stored.expires_at)


def _find_twin(draft: Draft) -> Letter | None:
    """The stored message that waits with the same id, sender, recipient and content."""
    if not draft.envelope.id:
        return None
    same = Letter.objects.filter(
        recipient_id=draft.recipient_id,
        state__in=WAITING,
        message_id=draft.envelope.id,
        sender_owner=draft.behalf.asker.user_id,
        sender=draft.sender,
    )
    content = draft.carried["content"]
    return next((one for one in same if show_frame(one.envelope)["content"] == content), None)


def _check_room(owner_id: int, draft: Draft, size: int) -> None:
    """Make room among what was delivered, and refuse what does not fit; the owner's row is locked.

    Raises:
        FrameRefused: 3003 `inbox_full`.
    """
    caller_id = draft.behalf.asker.user_id
    own = Q(sender_owner=caller_id, state__in=WAITING)
    if caller_id == owner_id:  # all agents of another owner are one sender
        own &= Q(sender=draft.sender)
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
    """True if receipts may still come for what a seat sent."""
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
