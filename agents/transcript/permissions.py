"""Permission requests of agents' programs: created, decided once, or expired (section 4.7 of the channel's wire).

Every verb is one transaction that locks the session first, as registering does: a decision either finds the
agent's connection, or the agent gets it when it reconnects.
"""

import logging
from datetime import timedelta
from typing import Any, Literal

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import User
from agents.models import PermissionRequest, Session, Turn
from agents.models.choices import Surface
from agents.transcript import announcements
from agents.transcript.announcements import (
    PermissionRequested,
    PermissionResolved,
    Resolution,
    announce,
    send_resolution,
)
from agents.transcript.pieces import ApprovalAsked, ApprovalDecided
from agents.transcript.recording import kept_text
from kit.clock import db_now, iso
from kit.sql import AnyRow

logger = logging.getLogger(__name__)

OPEN_FOR = timedelta(minutes=10)
RESEND_WITHIN = timedelta(
    minutes=10
)  # a decision that was sent this recently may have been lost with its socket or process
MAX_PENDING = 100
RELAYING = (Surface.A2A, Surface.MCP)  # whose callers may decide, and see in the task that they are asked
MAX_PREVIEW_CHARS = 8_192
MAX_MESSAGE_CHARS = 4_096
AT_ONCE = 200

Decision = Literal["allow", "deny"]
Status = PermissionRequest.Status
_are_pending = AnyRow(PermissionRequest.objects.filter(status=Status.PENDING))
STATUSES: dict[Decision, Status] = {"allow": Status.ALLOWED, "deny": Status.DENIED}
DECISIONS: dict[str, Literal["allow", "deny", "expired"]] = {
    Status.ALLOWED: "allow",
    Status.DENIED: "deny",
    Status.EXPIRED: "expired",
}


class NoSuchRequest(Exception):
    """The session has no request of that id."""


class AlreadyResolved(Exception):
    """Another user decided before, or the request expired; `row` says which."""

    def __init__(self, row: PermissionRequest) -> None:
        super().__init__(f"this request was {row.status} already")
        self.row = row


class AmbiguousDecision(Exception):
    """The decision may be meant for an earlier request of its turn."""


class TooManyPending(Exception):
    """The session has MAX_PENDING undecided requests."""


@transaction.atomic
def request(
    session_id: int, request_id: str, *, tool: str, input_preview: str, chat_id: str = ""
) -> PermissionRequest:
    """Store a permission request and show it to the session's operators; it expires after 10 minutes.

    `chat_id`: the turn that the agent works on. If the owner lets callers decide, the row says so.
    A request whose id is known is shown again while it is pending, and else answered with the decision. An id that
    is used again for another tool or input is denied: no approver has seen that text.

    Raises:
        NoSuchRequest: the session is gone.
        TooManyPending: nothing was stored.
    """
    session = _lock(session_id)
    row = PermissionRequest.objects.filter(session=session, request_id=request_id).first()
    preview = kept_text(input_preview, MAX_PREVIEW_CHARS)
    if row is None:
        chat_id = chat_id if chat_id and _may_be_relayed(session_id, chat_id) else ""
        row = _create(session, request_id, kept_text(tool, 256), preview, chat_id)
        announcements.queue_session_event(session, "permission.requested", _webhook_payload(row))
    elif (row.tool, row.input_preview) != (kept_text(tool, 256), preview):
        send_resolution(session_id, Resolution(request_id, "deny", "another request has this id"))
        return row
    if row.status == Status.PENDING and row.expires_at <= db_now():
        _settle(row, session, Status.EXPIRED)
    elif row.status == Status.PENDING:
        announce(session_id, shown(session, row))
    else:
        _send_decision(row)
    return row


def decide(
    session_id: int, request_id: str, *, decision: Decision, resolver_id: int, message: str = ""
) -> PermissionRequest:
    """Allow or deny a request for good; operators are notified now, the agent now or when it reconnects.

    Raises:
        NoSuchRequest: the session has none of that id.
        AlreadyResolved: another decision stands.
    """
    with transaction.atomic():
        row, stands = _decide(_lock(session_id), request_id, decision, resolver_id, message)
    if not stands:
        raise AlreadyResolved(row)
    return row


def decide_as_caller(
    session_id: int,
    chat_id: str,
    request_id: str,
    *,
    decision: Decision,
    caller_id: int,
    message: str = "",
    is_named: bool = True,
) -> PermissionRequest:
    """Decide a request for the caller of the turn in which the agent asked, as long as the turn is open.

    `is_named`: the caller named the request; else the request must be the first of its turn.

    Raises:
        NoSuchRequest: this caller may not decide the request, or no longer.
        AmbiguousDecision: another request of the turn was decided before; nothing was written.
        AlreadyResolved: another decision stands.
    """
    with transaction.atomic():
        session = _lock(session_id)  # before the turn is read, because the end of the turn waits for the same lock
        asked = PermissionRequest.objects.filter(session=session, request_id=request_id, chat_id=chat_id)
        if not (_may_be_relayed(session_id, chat_id, caller_id=caller_id) and asked.exists()):
            raise NoSuchRequest
        of_turn = PermissionRequest.objects.filter(session=session, chat_id=chat_id).exclude(request_id=request_id)
        if not is_named and of_turn.exclude(status=Status.PENDING).exists():
            raise AmbiguousDecision
        row, stands = _decide(session, request_id, decision, caller_id, message)
    if not stands:
        raise AlreadyResolved(row)
    return row


def find_requests_for_caller(row: PermissionRequest) -> ApprovalAsked | None:
    """A request as the caller of its turn gets it; None when the request is not for this caller, or was
    decided.
    """
    if not row.chat_id or row.status != Status.PENDING:
        return None
    return ApprovalAsked(row.request_id, row.tool, row.input_preview)


def expire_due() -> int:
    """End requests that were not decided in time; returns how many this call ended.

    Any process may call it at any time.
    """
    if not _are_pending():
        return 0
    due = PermissionRequest.objects.filter(status=Status.PENDING, expires_at__lte=db_now()).order_by("expires_at")
    return sum(_expire(session_id, pk) for session_id, pk in due.values_list("session_id", "pk")[:AT_ONCE])


@transaction.atomic
def take_unsent_decisions(session_id: int) -> list[Resolution]:
    """Decisions for an agent that just connected: decisions that it missed or may have missed."""
    now = db_now()
    missed = Q(told_at=None) | Q(told_at__gt=now - RESEND_WITHIN)
    decided = PermissionRequest.objects.filter(missed, session_id=session_id).exclude(status=Status.PENDING)
    rows = list(decided.order_by("-pk")[:AT_ONCE])
    if rows:
        PermissionRequest.objects.filter(pk__in=[row.pk for row in rows]).update(told_at=now)
    return [_resolution_of(row) for row in reversed(rows)]


def pending(session_id: int) -> QuerySet[PermissionRequest]:
    """Requests of a session that wait for a decision, first come first."""
    waiting = PermissionRequest.objects.filter(session_id=session_id, status=Status.PENDING)
    return waiting.filter(expires_at__gt=db_now()).order_by("pk")


def shown(session: Session, row: PermissionRequest) -> PermissionRequested:
    """A request as operators see it."""
    return PermissionRequested(
        str(session.public_id), row.request_id, row.tool, row.input_preview, iso(row.requested_at)
    )


def _lock(session_id: int) -> Session:
    session = Session.objects.select_for_update(no_key=True).filter(pk=session_id).first()
    if session is None:
        raise NoSuchRequest
    return session


def _decide(
    session: Session, request_id: str, decision: Decision, resolver_id: int, message: str
) -> tuple[PermissionRequest, bool]:
    """Decide a request; returns its row, and True if this decision stands. The caller has locked the session."""
    row = PermissionRequest.objects.filter(session=session, request_id=request_id).first()
    if row is None:
        raise NoSuchRequest
    if row.status == Status.PENDING and row.expires_at <= db_now():
        _settle(row, session, Status.EXPIRED)
        return row, False
    resolver = User.objects.get(pk=resolver_id)
    return row, _settle(row, session, STATUSES[decision], resolver, kept_text(message, MAX_MESSAGE_CHARS))


def _may_be_relayed(session_id: int, chat_id: str, **of_turn: int) -> bool:
    """True if a caller of A2A or MCP waits in that turn, of an agent whose owner lets callers decide."""
    turns = Turn.objects.open().filter(session_id=session_id, chat_id=chat_id, surface__in=RELAYING, **of_turn)
    found: bool = turns.filter(agent__caller_approvals=True, agent__deleted_at=None).exists()
    return found


def _create(session: Session, request_id: str, tool: str, preview: str, chat_id: str = "") -> PermissionRequest:
    if pending(session.pk).count() >= MAX_PENDING:
        raise TooManyPending
    now = db_now()
    return PermissionRequest.objects.create(
        session=session,
        request_id=request_id,
        chat_id=chat_id,
        tool=tool,
        input_preview=preview,
        requested_at=now,
        expires_at=now + OPEN_FOR,
    )


@transaction.atomic
def _expire(session_id: int, pk: int) -> bool:
    try:
        session = _lock(session_id)
    except NoSuchRequest:
        return False
    row = PermissionRequest.objects.filter(pk=pk).first()
    return row is not None and _settle(row, session, Status.EXPIRED)


def _settle(
    row: PermissionRequest, session: Session, status: Status, resolver: User | None = None, message: str = ""
) -> bool:
    """End a pending request and notify its agent and operators.

    Returns False if the request had ended before; `row` then has the stored values.
    """
    end = {"status": status, "resolved_at": db_now(), "resolver": resolver, "message": message}
    was_open = PermissionRequest.objects.filter(pk=row.pk, status=Status.PENDING).update(**end) == 1
    row.refresh_from_db()
    if was_open:
        _send_decision(row)
        login = resolver.login if resolver else None
        announce(session.pk, PermissionResolved(str(session.public_id), row.request_id, DECISIONS[status], login))
        decided = {"decision": DECISIONS[status], "resolverLogin": login}
        announcements.queue_session_event(session, "permission.resolved", _webhook_payload(row) | decided)
    return was_open


def _webhook_payload(row: PermissionRequest) -> dict[str, Any]:
    """A request as webhooks name it."""
    return {"requestId": row.request_id, "tool": row.tool, "inputPreview": row.input_preview}


def _send_decision(row: PermissionRequest) -> None:
    piece = ApprovalDecided(row.request_id, row.tool, DECISIONS[row.status]) if row.chat_id else None
    if send_resolution(row.session_id, _resolution_of(row), row.chat_id, piece):
        row.told_at = db_now()
        row.save(update_fields=["told_at"])


def _resolution_of(row: PermissionRequest) -> Resolution:
    return Resolution(row.request_id, DECISIONS[row.status], row.message or None)
