"""The periodic jobs of AGNT. Every job may run twice, late, or several times at once."""

import logging
from datetime import UTC, timedelta

from agnt.models import Interaction, KeyUsage, Network, SeenEnvelope, SeenSignature
from agnt.service.cancellations import find_old
from agnt.service.figures import report_drift
from agnt.service.invoicers import InvoicerDown, make_invoicer
from agnt.service.invoices import run_batch
from kit import batches
from kit.clock import db_now
from kit.jobs import job

logger = logging.getLogger(__name__)

MAX_INTERACTIONS = 1_000_000  # of a network


@job("agnt.send_invoices")
def send_invoices() -> int:
    """Bill the days that are over, and send all unsent bills; returns the number of bills sent."""
    try:
        invoicer = make_invoicer()
    except InvoicerDown as why:
        logger.error("agnt.invoicer_down", extra={"reason": str(why)})
        return 0
    return run_batch(invoicer).sent


@job("agnt.check_metering")
def check_metering() -> int:
    """Log bookings without a charge, and charges without a confirm; returns their number."""
    return report_drift()


@job("agnt.forget_seen")
def forget_seen() -> int:
    """Delete expired envelopes and signatures, and old cancellations; returns the number of deleted rows."""
    now = db_now()
    seen = [model.objects.filter(expires_at__lt=now) for model in (SeenEnvelope, SeenSignature)]
    return sum(map(batches.delete, [*seen, find_old()]))


@job("agnt.forget_interactions")
def forget_interactions(most: int = MAX_INTERACTIONS) -> int:
    """Delete interactions older than their network keeps them, and those beyond `most` of each; returns the
    number.
    """
    now, gone = db_now(), 0
    for network_id, kept_days in Network.objects.values_list("pk", "interactions_kept_days").iterator():
        of_network = Interaction.objects.filter(network_id=network_id)
        gone += batches.delete(of_network.filter(at__lt=now - timedelta(days=kept_days)))
        newest = of_network.order_by("-at").values_list("at", flat=True)
        too_old = newest[most : most + 1].first()
        if too_old is not None:
            gone += batches.delete(of_network.filter(at__lte=too_old))
    return gone


@job("agnt.forget_usage")
def forget_usage(kept_days: int) -> int:
    """Delete the daily counts of keys that are older than that; returns the number of deleted rows."""
    before = (db_now() - timedelta(days=kept_days)).astimezone(UTC).date()
    return batches.delete(KeyUsage.objects.filter(day__lt=before))
