"""Claims on stored messages: the next message of a recipient, and the result of its delivery. Synchronous.

One process at a time delivers to a recipient: the row of the message that is being sent names the process. If that
process dies, the message is sent again, unless its turn says that the agent got it (docs/adr/0136).
"""

from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts import quotas
from agents.core.admission import SESSION_CAP
from agents.models import Process, Session, Turn
from agents.models.choices import Outcome
from agents.models.session import alive_since, online_sessions
from agents.transcript.access import SessionRole, sessions_visible_to
from gateway.models import Letter
from gateway.service.queue_ends import (
    MAX_ATTEMPTS,
    NOT_ALLOWED,
    UNDELIVERABLE,
    dead_message_error,
    end_message,
    tell_sender,
)
from gateway.service.queue_rows import WAITING, Obstacle, find_obstacle
from gateway.service.team_rules import AgentName, allow_message, load_peers
from gateway.wire.errors import GatewayErrorCode
from kit.clock import db_now
from kit.durations import seconds
from kit.ids import time_ordered
from kit.sql import AnyRow

HIGHER_IN_A_ROW = 16  # after so many, one message of a lower priority goes first
CLAIM_S = seconds(60.0, at_least_s=30.0)


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
        return Claim(is_blocked=True)  # the message has expired, or was read or cleared, since the query
    for name, value in claim.items():
        setattr(stored, name, value)
    return Claim(stored, has_lower=lower is not None and stored is highest)


def recover(stored: Letter) -> None:
    """Decide the state of a stored message whose process died while sending it."""
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


def find_due_recipients(process_id: str) -> list[int]:
    """The seats of this process that have stored messages."""
    found: QuerySet[Session, int] = Session.objects.filter(
        connection__process_id=process_id, pk__in=_queued().values("recipient")
    ).values_list("pk", flat=True)
    return list(found)


def _queued() -> QuerySet[Letter]:
    return Letter.objects.filter(state__in=WAITING)


are_queued = AnyRow(_queued())  # stored messages that wait for their recipients


def _claimed(stored: Letter) -> QuerySet[Letter]:
    """The row, while this claim on it holds."""
    return Letter.objects.filter(pk=stored.pk, state=Letter.State.SENDING, chat_id=stored.chat_id)


def _may_send(stored: Letter) -> bool:
    """True if the sender may still send to the recipient: a share may have been taken back, or a list changed."""
    if stored.tells and stored.sender_session is not None:  # lists of peers do not apply to replies
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
    # No stored message is ahead of this one: only the recipient's status decides.
    return find_obstacle(stored.recipient_id, 0, "", Letter.Priority.NORMAL) is not Obstacle.STATUS
