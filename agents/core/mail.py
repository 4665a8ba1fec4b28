"""Mails to owners: rows of an outbox, sent to confirmed addresses only.

If a process dies after the mail server accepted a mail, the mail is sent again with the same Message-ID.
"""

import logging
import smtplib
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from email.errors import MessageError

from django.core import signing
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import QuerySet

from accounts.models import User
from accounts.throttle import check_confirmation_mails
from agents import settings
from agents.models import AlertAddress, Mail
from kit import batches
from kit.clock import db_now
from kit.durations import seconds
from kit.ids import time_ordered
from kit.outbox import AttemptEnd, AttemptResult, Outbox
from webhooks.service.outbox import NOT_PAUSED

logger = logging.getLogger(__name__)

KEPT = timedelta(days=3)  # for mails that cannot be sent: mail is off, or sending is paused
RETRY_AFTER_S = tuple(map(seconds, (60, 300, 1800, 7200, 21600)))
CONFIRM_WITHIN = timedelta(days=1)
MAIL_AGAIN_AFTER = timedelta(minutes=10)
SALT = "agents.alert-address"
# The last two: the message cannot be written.
FAILURES = (OSError, smtplib.SMTPException, MessageError, ValueError)


def find_addresses(owner_ids: Collection[int]) -> dict[int, str]:
    """The confirmed addresses of these owners; none on a hub that sends no mail."""
    if not settings.SENDS_MAIL:
        return {}
    confirmed = AlertAddress.objects.filter(owner_id__in=owner_ids).exclude(confirmed_at=None).exclude(email="")
    return dict(confirmed.values_list("owner_id", "email"))


def queue_mails(mails: Iterable[tuple[int, str, str, str]]) -> None:
    """Insert a row for each mail (owner, address, subject, text), in the transaction that causes the mails."""
    now = db_now()
    rows = [
        Mail(
            owner_id=owner_id,
            to=to,
            subject=subject,
            contents=contents,
            message_id=time_ordered(),
            queued_at=now,
            next_attempt_at=now,
        )
        for owner_id, to, subject, contents in mails
    ]
    Mail.objects.bulk_create(rows)


@transaction.atomic
def set_address(owner: User, email: str) -> None:
    """Set the address for this owner's alerts, and mail a link to it by which the owner confirms it; empty: none.

    If the address is the same and not confirmed, another link is mailed after MAIL_AGAIN_AFTER.

    Raises:
        TooFast: the owner asked for too many such mails, and nothing was written.
    """
    AlertAddress.objects.get_or_create(owner=owner)
    row = AlertAddress.objects.select_for_update(no_key=True).get(owner=owner)
    now = db_now()
    is_waiting = row.confirmed_at is None and (row.asked_at is None or now - row.asked_at >= MAIL_AGAIN_AFTER)
    if email and (email != row.email or is_waiting):
        check_confirmation_mails(owner.pk)
        row.asked_at = now
        queue_mails([(owner.pk, email, "[Clawbridge] Confirm your address", _confirmation(owner, email))])
    if email != row.email:
        row.confirmed_at = None
    row.email, row.failed_at = email, None
    row.save(update_fields=["email", "confirmed_at", "asked_at", "failed_at"])


def confirm_address(owner: User, token: str) -> bool:
    """Confirm the address that a link was mailed to; returns False for an old or foreign link."""
    try:
        owner_id, email = signing.loads(token, salt=SALT, max_age=CONFIRM_WITHIN)
    except (signing.BadSignature, ValueError):
        return False
    own = AlertAddress.objects.filter(owner=owner, email=email)
    return owner_id == owner.pk and bool(own.update(confirmed_at=db_now(), failed_at=None))


def _confirmation(owner: User, email: str) -> str:
    token = signing.dumps([owner.pk, email], salt=SALT)
    link = f"{settings.PUBLIC_URL}/desk/alerts?confirm={token}"
    hub = settings.PUBLIC_URL
    return (
        f"@{owner.login} asked {hub} to mail alerts about agents to this address.\n\n"
        f"If this is you, sign in and confirm within a day:\n{link}\n\n"
        "If not, do nothing: the hub mails you no alerts.\n"
    )


def forget_old_mails() -> int:
    """Delete mails that waited too long; returns their number."""
    return batches.delete(Mail.objects.filter(queued_at__lt=db_now() - KEPT))


class MailOutbox(Outbox):
    """The outbox of mails, which are sent one at a time. A mail that was sent, or given up, is deleted.

    No mail is due on a hub that sends none, or while sending is paused.
    """

    name = "mail"
    rows = Mail
    receiver = "to"
    at_once = 1
    retry_after_s = RETRY_AFTER_S

    def find_sendable(self) -> QuerySet[Mail]:
        """See `Outbox`."""
        is_on = settings.SENDS_MAIL
        return Mail.objects.filter(NOT_PAUSED, owner__is_active=True) if is_on else Mail.objects.none()

    def prepare(self, row: Mail, now: datetime) -> EmailMessage:
        """See `Outbox`."""
        sender = settings.DEFAULT_FROM_EMAIL
        message_id = f"<{row.message_id}@{sender.rpartition('@')[2].rstrip('>')}>"
        headers = {"Message-ID": message_id, "Auto-Submitted": "auto-generated"}
        return EmailMessage(row.subject, row.contents, sender, [row.to], headers=headers)

    def send(self, prepared: EmailMessage) -> AttemptResult:
        """See `Outbox`."""
        try:
            prepared.send()
        except FAILURES as failure:
            return AttemptResult(is_success=False, error=type(failure).__name__)
        return AttemptResult(is_success=True)

    def store_end(self, leased: QuerySet[Mail], end: AttemptEnd) -> int:
        """See `Outbox`. If a mail is given up, the page of alerts shows that to the owner."""
        mail: Mail = end.row
        extra = {"mail": mail.message_id, "failure": end.outcome.error, "attempts": mail.attempts}
        if end.retry_at:
            logger.warning("mail.failed", extra=extra)
            return leased.update(next_attempt_at=end.retry_at)
        if end.is_given_up:
            logger.error("mail.given_up", extra=extra)
            AlertAddress.objects.filter(owner_id=mail.owner_id, email=mail.to).update(failed_at=end.at)
        return leased.delete()[0]
