"""The inboxes of a team, as rows: reading, marking and clearing the stored messages of an agent. Synchronous.

`deliver` and `read_waiting` are for messages that came over another transport, or leave over it.
"""

from collections.abc import Collection, Iterator, Sequence

import msgspec
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Least

from accounts.models import User
from agents.models import Session
from gateway.models import Letter
from gateway.service.messages import make_stored
from gateway.service.queue_ends import CLEARED, dead_message_error, end_message, tell_sender
from gateway.service.queue_rows import WAITING, open_frame, show_frame, store_message
from gateway.service.seat import GATEWAY_LINK, act_without_seat
from gateway.wire.errors import NOT_FOUND, FrameRefused, GatewayErrorCode, bad_content
from gateway.wire.frame_types import is_agent_name
from gateway.wire.frames import Envelope, Json, check_frame, read_type
from kit import batches
from kit.clock import db_now, unix_ms

INBOX = (*WAITING, Letter.State.DELIVERED, Letter.State.READ)  # dead messages are not shown
CLEARED_AT_ONCE = 1_000
MAX_INBOXES = 500
MAX_SEATS = 1_000  # recipients of one broadcast


def get_seat(owner_id: int, name: str) -> int:
    """The session of an agent of a team.

    Raises:
        FrameRefused: 3001.
    """
    named = Session.objects.filter(owner_id=owner_id, routing_name=name, link=GATEWAY_LINK, archived_at=None)
    found: int | None = named.order_by("-last_seen_at").values_list("pk", flat=True).first()
    if found is None:
        raise FrameRefused(GatewayErrorCode.AGENT_NOT_FOUND, NOT_FOUND)
    return found


def load_messages(session_id: int, limit: int, offset: int, *, is_unread: bool) -> list[Json]:
    """A part of an inbox, newest first. `is_unread`: only unread messages."""
    found = Letter.objects.filter(recipient=session_id, state__in=INBOX)
    if is_unread:
        found = found.exclude(state=Letter.State.READ)
    return [show_message(one) for one in found.order_by("-received_at", "-pk")[offset : offset + limit]]


def show_message(stored: Letter) -> Json:
    """A stored message as its recipient sees it."""
    carried = show_frame(stored.envelope)
    return {
        "messageId": stored.message_id,
        "from": stored.sender,
        "content": carried["content"],
        "metadata": carried["metadata"],
        **show_state(stored),
    }


def show_state(stored: Letter) -> Json:
    """The state of a stored message; times in Unix milliseconds."""
    times = {
        "receivedAt": stored.received_at,
        "expiresAt": stored.expires_at,
        "deliveredAt": stored.delivered_at,
        "readAt": stored.read_at,
    }
    shown: Json = {key: unix_ms(value) for key, value in times.items() if value is not None}
    state = Letter.State.QUEUED if stored.state in WAITING else stored.state
    reason = {"reason": stored.reason} if stored.reason else {}
    return {"state": str(state), "priority": stored.get_priority_display().lower(), **shown, **reason}


def count_messages(session_id: int) -> Json:
    """The number of stored messages of an inbox."""
    found = Letter.objects.filter(recipient=session_id, state__in=INBOX)
    return found.aggregate(
        total=Count("pk"),
        unread=Count("pk", filter=~Q(state=Letter.State.READ)),
        queued=Count("pk", filter=Q(state__in=WAITING)),
    )


def list_inboxes(owner_id: int, session_id: int) -> list[Json]:
    """The inboxes of a team by name, each with its counts. `session_id`: only this one, 0: all."""
    seats = Session.objects.filter(owner_id=owner_id, link=GATEWAY_LINK, archived_at=None)
    if session_id:
        seats = seats.filter(pk=session_id)
    alive = Q(letters__state__in=INBOX)
    counted = seats.annotate(
        total=Count("letters", filter=alive),
        unread=Count("letters", filter=alive & ~Q(letters__state=Letter.State.READ)),
        queued=Count("letters", filter=Q(letters__state__in=WAITING)),
        dead=Count("letters", filter=Q(letters__state=Letter.State.DEAD)),
    )
    columns = ("total", "unread", "queued", "dead")
    found = counted.order_by("routing_name").values("routing_name", *columns)[:MAX_INBOXES]
    return [{"agent": one["routing_name"], **{name: one[name] for name in columns}} for one in found]


@transaction.atomic
def mark_read(session_id: int, message_ids: Collection[str] | None) -> int:
    """Note that messages were read, those of these ids or all; how many. The senders get receipts.

    A stored message that still waits is not delivered any more, unless its sender waits for a reply.
    """
    found = Letter.objects.filter(recipient=session_id).select_related("sender_session")
    if message_ids is not None:
        found = found.filter(message_id__in=message_ids)
    pulled = Q(state=Letter.State.QUEUED, wants_response=False)
    unread = found.filter(Q(state=Letter.State.DELIVERED) | pulled).order_by("pk")
    return sum(map(_mark_one_read, unread[:CLEARED_AT_ONCE]))


def _mark_one_read(stored: Letter) -> bool:
    now = db_now()
    row = Letter.objects.filter(pk=stored.pk, state=stored.state)
    if not row.update(state=Letter.State.READ, read_at=now, delivered_at=stored.delivered_at or now):
        return False
    tell_sender(stored, "message.read")
    return True


def clear_inbox(session_id: int) -> Json:
    """Delete the delivered messages of an inbox, and end the waiting ones; how many of each. Tells the senders."""
    found = Letter.objects.filter(recipient=session_id)
    kept = found.filter(state__in=(Letter.State.DELIVERED, Letter.State.READ), reply_at=None).order_by("pk")
    deleted = Letter.objects.filter(pk__in=list(kept.values_list("pk", flat=True)[:CLEARED_AT_ONCE])).delete()[0]
    queued = found.filter(state=Letter.State.QUEUED).select_related("sender_session").order_by("pk")
    ended = sum(end_message(one, dead_message_error(CLEARED)) for one in queued[:CLEARED_AT_ONCE])
    return {"deleted": deleted, "ended": ended}


def load_receipts(user_id: int, names: Collection[str], message_id: str, agent: str) -> Sequence[Json]:
    """The states of the stored messages that a sender sent with that id, newest first; `agent` narrows them.

    `names`: those that its recipients see.
    """
    found: QuerySet[Letter] = Letter.objects.filter(sender_owner=user_id, message_id=message_id, sender__in=names)
    if agent:
        found = found.filter(addressed_to=agent)
    return [
        {"messageId": one.message_id, "agent": one.addressed_to, **show_state(one)}
        for one in found.order_by("-pk")[:10]
    ]


@transaction.atomic
def delete_message(stored: Letter) -> bool:
    """Delete a stored message for the owner of its inbox; False while it is being delivered.

    A message whose sender waits for a reply becomes a dead message first, and stays until the sender has the
    error.
    """
    has_ended = stored.state == Letter.State.QUEUED and end_message(stored, dead_message_error(CLEARED))
    row = Letter.objects.filter(pk=stored.pk, reply_at=None).exclude(state=Letter.State.SENDING)
    return bool(row.delete()[0]) or has_ended


def retry_message(stored: Letter) -> bool:
    """Let a dead stored message wait again, without an end; False when it is not dead.

    A message that may have been sent once keeps that mark (`queue_ends.has_died_unsent`).
    """
    again = {
        "state": Letter.State.QUEUED,
        "reason": "",
        "attempts": Least("attempts", 1),
        "expires_at": None,
        "wants_response": False,
    }
    dead = Letter.objects.filter(pk=stored.pk, state=Letter.State.DEAD)
    return bool(dead.update(**again, reply="", reply_at=None))


def deliver(owner: User, frame: Json) -> int:
    """Put a message into the inbox of its agent, a broadcast into that of every other agent; into how many.

    A message that waits there already is not stored twice. The sender of the message then waits for no response
    any more. Frames of other types wait in no inbox: 0.

    Raises:
        FrameRefused: it is not in order, or did not fit into all of these inboxes.
    """
    metadata = {key: value for key, value in frame.get("metadata", {}).items() if key != "requiresResponse"}
    envelope = check_frame({**frame, "metadata": metadata}, read_type(frame))
    if not is_agent_name(envelope.sender):
        raise bad_content("from: want the name of an agent: lower-case letters, digits and hyphens", field="from")
    seats = Session.objects.filter(owner=owner, link=GATEWAY_LINK, archived_at=None).order_by("pk")
    match envelope.type:
        case "message":
            seat = seats.filter(routing_name=envelope.agent).last()
            if seat is None:
                raise FrameRefused(GatewayErrorCode.AGENT_NOT_FOUND, NOT_FOUND, field="agent")
            return _store(owner, envelope, seat)
        case "broadcast":
            content = {"role": "agent", "content": envelope.content["message"]}
            told = msgspec.structs.replace(envelope, type="message", content=content)
            others = seats.exclude(routing_name=envelope.sender)[:MAX_SEATS]
            return sum(_store(owner, msgspec.structs.replace(told, agent=one.routing_name), one) for one in others)
    return 0


def read_waiting(owner: User) -> Iterator[Json]:
    """The messages that wait in the inboxes of a team as frames, oldest first."""
    waiting = Letter.objects.filter(owner=owner, state__in=WAITING)
    for rows in batches.walk_rows(waiting, "envelope", "recipient__routing_name", at_once=200):
        for _, text, name in rows:
            carried = open_frame(text)
            extra = carried.pop("extra", {})
            yield {**extra, **carried, "type": "message", "agent": name}


def _store(owner: User, envelope: Envelope, seat: Session) -> int:
    twins = Letter.objects.filter(
        recipient=seat, state__in=WAITING, message_id=envelope.id, sender=envelope.sender
    )
    if envelope.id and twins.exists():
        return 0
    behalf = act_without_seat(owner.pk, owner.login)
    told = make_stored(seat.pk, envelope, behalf, envelope.sender, key=envelope.correlation_id)
    store_message(told, is_wanted=True)
    return 1
