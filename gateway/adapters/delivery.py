"""Messages that came over another transport, put into the inboxes of a team; and what waits there, read again."""

from collections.abc import Iterator

import msgspec
from django.db import transaction
from django.db.models import QuerySet, Sum

from accounts import quotas
from accounts.models import User
from agents.models import Session
from gateway.envelope import Envelope, Json, check_frame, read_type
from gateway.errors import NOT_FOUND, ErrorCode, FrameRefused
from gateway.frame_types import is_agent_name
from gateway.models import Letter
from gateway.seat import GATEWAY_LINK, carry_envelope
from kit import batches
from kit.clock import db_now

MOST_LETTERS = 10_000  # of one team
MOST_BYTES = 67_108_864
PRIORITIES = {one.label.lower(): one for one in Letter.Priority}


def deliver(owner: User, frame: Json) -> int:
    """Put a message into the inbox of its agent, a broadcast into that of every other agent; into how many.

    A message that waits there already is not stored twice. Frames of other types wait in no inbox: 0.

    Raises:
        FrameRefused: nothing was stored.
    """
    envelope = check_frame(frame, read_type(frame))
    if not is_agent_name(envelope.sender):
        text = "from: want the name of an agent: lower-case letters, digits and hyphens"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="from")
    match envelope.type:
        case "message":
            return _store(owner, envelope, [_get_seat(owner, envelope.agent)])
        case "broadcast":
            message = {"role": "agent", "content": envelope.content["message"]}
            told = check_frame({**frame, "type": "message", "content": message, "agent": envelope.sender}, MESSAGE)
            others = _seats_of(owner).exclude(routing_name=envelope.sender)
            return _store(owner, told, list(others[:MOST_LETTERS]))
    return 0


def read_waiting(owner: User) -> Iterator[Json]:
    """The messages that wait in the inboxes of a team as frames, oldest first."""
    waiting = Letter.objects.filter(owner=owner, state=Letter.State.QUEUED)
    for rows in batches.walk_rows(waiting, "envelope", "recipient__routing_name", at_once=200):
        for _, text, name in rows:
            carried = msgspec.json.decode(text)
            extra = carried.pop("extra", {})
            yield {**extra, **carried, "type": "message", "agent": name}


MESSAGE = read_type({"type": "message"})


@transaction.atomic
def _store(owner: User, envelope: Envelope, seats: list[Session]) -> int:
    quotas.lock_owner(owner.pk)
    carried = carry_envelope(envelope, envelope.sender, "")[0].data
    text = msgspec.json.encode(carried).decode()
    size = len(text.encode())
    held = Letter.objects.filter(owner=owner)
    known = set(
        held.filter(message_id=carried["id"], sender=envelope.sender).values_list("recipient_id", flat=True)
    )
    new = [one for one in seats if one.pk not in known]
    bytes_held = held.aggregate(held=Sum("bytes", default=0))["held"]
    if held.count() + len(new) > MOST_LETTERS or bytes_held + size * len(new) > MOST_BYTES:
        raise FrameRefused(ErrorCode.AGENT_BUSY, "the inboxes of this team are full", reason="inbox_full")
    now = db_now()
    letters = [
        Letter(
            owner=owner,
            recipient=seat,
            sender_owner=owner,
            sender=envelope.sender,
            message_id=carried["id"],
            envelope=text,
            bytes=size,
            priority=PRIORITIES[envelope.metadata.get("priority", "normal")],
            received_at=now,
        )
        for seat in new
    ]
    return len(Letter.objects.bulk_create(letters))


def _seats_of(owner: User) -> "QuerySet[Session]":
    return Session.objects.filter(owner=owner, link=GATEWAY_LINK, archived_at=None).order_by("pk")


def _get_seat(owner: User, name: str) -> Session:
    found = _seats_of(owner).filter(routing_name=name).last()
    if found is None:
        raise FrameRefused(ErrorCode.AGENT_NOT_FOUND, NOT_FOUND, field="agent")
    return found
