"""The nightly batch: makes bills of the charges of past days, and sends those that were not sent.

A bill is for one customer of a network and one UTC day, and complete when it is made, in one transaction with its
charges: later charges go on another bill. A bill is sent outside any transaction and marked afterwards. A program
that dies in between leaves the bill open, and the next run sends it again under the same key.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db import transaction
from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import TruncDate

from agnt.models import Invoice, UsageEvent
from agnt.service.invoicers import Bill, BillLine, BillRefused, Invoicer, InvoicerDown
from kit.clock import db_now
from kit.money import CENT, decimal_usd
from webhooks.service.outbox import find_pause

logger = logging.getLogger(__name__)

# A charge has the time of its transaction, which may commit a little later.
AFTER_MIDNIGHT = timedelta(minutes=10)
LINES_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The number of bills that a run made, sent, and found refused, and that wait for an operator."""

    made: int = 0
    sent: int = 0
    refused: int = 0
    uncertain: int = 0


def run_batch(invoicer: Invoicer) -> BatchResult:
    """Make and send the bills of all days that are over. May run at any time, and several at once.

    Nothing happens while sending is paused: a restored copy has bills that the original sends.
    """
    if find_pause() is not None:
        return BatchResult()
    made = make_invoices(db_now())
    result = send_invoices(invoicer)
    return BatchResult(made, result.sent, result.refused, result.uncertain)


def make_invoices(now: datetime) -> int:
    """Make an invoice for each network, customer and UTC day with charges on no invoice yet; returns the number of
    invoices.
    """
    today = (now - AFTER_MIDNIGHT).astimezone(UTC).date()
    over = UsageEvent.objects.filter(invoice=None, at__lt=_midnight(today))
    groups = over.annotate(day=TruncDate("at", tzinfo=UTC)).values_list("network_id", "customer", "day").distinct()
    last = today - timedelta(days=1)
    return sum(_make_invoice(*group, last) for group in list(groups.order_by("day", "network_id", "customer")))


def send_invoices(invoicer: Invoicer) -> BatchResult:
    """Send the open invoices, oldest first; a refused invoice stays open.

    An invoicer that is down ends the run: the next one sends the rest.
    """
    sent = refused = uncertain = 0
    for invoice in list_open():
        if _is_uncertain(invoice, invoicer):
            uncertain += 1
            logger.error("agnt.invoice_uncertain", extra={"invoice": invoice.pk})
            continue
        try:
            sent += _send(invoice, invoicer)
        except BillRefused as why:
            refused += 1
            logger.warning("agnt.invoice_refused", extra={"invoice": invoice.pk, "reason": str(why)})
        except InvoicerDown as why:
            logger.warning("agnt.invoicer_down", extra={"invoice": invoice.pk, "reason": str(why)})
            break
    return BatchResult(sent=sent, refused=refused, uncertain=uncertain)


def list_open() -> QuerySet[Invoice]:
    """The invoices that were not sent, oldest first."""
    rows = Invoice.objects.filter(state=Invoice.State.OPEN)
    return rows.select_related("network__owner", "network__service_user").order_by("pk")


@transaction.atomic
def allow_again(invoice_id: int, customer: str = "") -> bool:
    """Have the next run send an invoice that may have arrived already; False: the invoice is not open.

    `customer`: to whom instead of the one that it has.

    Raises:
        django.db.IntegrityError: that customer has an invoice of the same network and day. Nothing was changed.
    """
    changes = {"tried_at": None} | ({"customer": customer} if customer else {})
    return bool(Invoice.objects.filter(pk=invoice_id, state=Invoice.State.OPEN).update(**changes))


def mark_sent(invoice_id: int, external_id: str) -> bool:
    """Mark an invoice as sent, for an operator or a run; returns False if the invoice is not open."""
    still_open = Invoice.objects.filter(pk=invoice_id, state=Invoice.State.OPEN)
    return bool(still_open.update(state=Invoice.State.SENT, sent_at=db_now(), external_id=external_id))


@transaction.atomic
def _make_invoice(network_id: int, customer: str, day: date, last: date) -> int:
    """Put the charges of a group on an invoice of their day; late ones on that of the last day that is over."""
    waiting = UsageEvent.objects.filter(
        network_id=network_id, customer=customer, invoice=None, at__gte=_midnight(day)
    ).filter(at__lt=_midnight(day + timedelta(days=1)))
    for billed_on in dict.fromkeys((day, last)):
        invoice, is_new = Invoice.objects.get_or_create(network_id=network_id, customer=customer, day=billed_on)
        if is_new:
            break
    else:  # the invoices of both days are complete: the charges wait until another day is over
        return 0
    waiting.update(invoice=invoice)
    total = invoice.events.aggregate(cents=Sum("amount_cents"), count=Count("pk"))
    if not total["count"]:  # another run has put the charges on an invoice
        invoice.delete()
        return 0
    invoice.total_cents, invoice.count = total["cents"], total["count"]
    invoice.save(update_fields=["total_cents", "count"])
    return 1


def _send(invoice: Invoice, invoicer: Invoicer) -> bool:
    """Send an invoice; returns True if this run marked the invoice as sent."""
    mine = Invoice.objects.filter(pk=invoice.pk, state=Invoice.State.OPEN)
    is_first = bool(mine.filter(tried_at=None).update(tried_at=db_now()))
    try:
        external_id = invoicer.send(_describe(invoice))
    except BillRefused:
        if is_first:  # else an earlier attempt may have arrived
            mine.update(tried_at=None)
        raise
    if not mark_sent(invoice.pk, external_id):
        return False
    logger.info("agnt.invoice_sent", extra={"invoice": invoice.pk, "usd": decimal_usd(invoice.total_cents * CENT)})
    return True


def _is_uncertain(invoice: Invoice, invoicer: Invoicer) -> bool:
    """True if the invoice may have arrived so long ago that the invoicer would count it again."""
    if invoice.tried_at is None or invoicer.remembers is None:
        return False
    return bool(invoice.tried_at < db_now() - invoicer.remembers)


def _describe(invoice: Invoice) -> Bill:
    events = invoice.events.select_related("booking").order_by("at", "pk")
    return Bill(
        number=invoice.pk,
        network=invoice.network.service_user.login,
        customer=invoice.customer,
        day=invoice.day,
        total_cents=invoice.total_cents,
        read_lines=lambda: _read_lines(events),
    )


def _read_lines(events: QuerySet[UsageEvent]) -> Iterator[BillLine]:
    columns = events.values_list("booking__public_id", "at", "amount_cents")
    for booking_id, at, amount_cents in columns.iterator(chunk_size=LINES_AT_ONCE):
        yield BillLine(str(booking_id), at, amount_cents)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
