"""Messages that came over another transport, put into the inboxes of a team; and what waits there, read again."""

from collections.abc import Iterator

import msgspec

from accounts.models import User
from agents.core.ask_starter import Asker
from agents.links.channel.requests import ActingFor
from agents.models import Session
from gateway.models import Letter
from gateway.service.letters.letters import WAITING, Draft, store_letter
from gateway.service.letters.sealed import open_frame
from gateway.service.messages.addressing import NO_SESSION
from gateway.service.seats.seat import GATEWAY_LINK, carry_envelope
from gateway.wire.errors import NOT_FOUND, ErrorCode, FrameRefused
from gateway.wire.frame_types import is_agent_name
from gateway.wire.frames import Envelope, Json, check_frame, read_type
from kit import batches
from kit.clock import db_now

MOST_SEATS = 1_000  # that one broadcast is for


def deliver(owner: User, frame: Json) -> int:
    """Put a message into the inbox of its agent, a broadcast into that of every other agent; into how many.

    A message that waits there already is not stored twice. Its sender waits for no response any more. Frames of
    other types wait in no inbox: 0.

    Raises:
        FrameRefused: it is not in order, or did not fit into all of these inboxes.
    """
    metadata = {key: value for key, value in frame.get("metadata", {}).items() if key != "requiresResponse"}
    envelope = check_frame({**frame, "metadata": metadata}, read_type(frame))
    if not is_agent_name(envelope.sender):
        text = "from: want the name of an agent: lower-case letters, digits and hyphens"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="from")
    seats = Session.objects.filter(owner=owner, link=GATEWAY_LINK, archived_at=None).order_by("pk")
    match envelope.type:
        case "message":
            seat = seats.filter(routing_name=envelope.agent).last()
            if seat is None:
                raise FrameRefused(ErrorCode.AGENT_NOT_FOUND, NOT_FOUND, field="agent")
            return _store(owner, envelope, seat)
        case "broadcast":
            content = {"role": "agent", "content": envelope.content["message"]}
            told = msgspec.structs.replace(envelope, type="message", content=content)
            others = seats.exclude(routing_name=envelope.sender)[:MOST_SEATS]
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
    carried = carry_envelope(envelope, envelope.sender, "")[0].data
    twins = Letter.objects.filter(
        recipient=seat, state__in=WAITING, message_id=carried["id"], sender=envelope.sender
    )
    if envelope.id and twins.exists():
        return 0
    draft = Draft(
        recipient_id=seat.pk,
        behalf=ActingFor(Asker(user_id=owner.pk, login=owner.login), NO_SESSION),
        sender=envelope.sender,
        tells="",
        correlation_id=envelope.correlation_id,
        envelope=envelope,
        carried=carried,
        place=None,
        received_at=db_now(),
        wait_s=0,
    )
    store_letter(draft, is_wanted=True)
    return 1
